import { setTimeout as pause } from "node:timers/promises";
import { hasCode } from "../errors.ts";
import type { Driver, DriverConnection } from "../store/postgres/driver.ts";
import { checkSchema } from "../store/postgres/migrate.ts";
import { forgetBatch, ledgerPages } from "../store/postgres/forget.ts";
import { wholeNumber } from "../whole-number.ts";

export interface SweepOptions {
  /** How long identities are kept, in milliseconds, by the clock of the database. */
  readonly windowMs: number;
  /** The schema that holds the inbox's tables. Default `inbox`. */
  readonly schema?: string | undefined;
  /** How long one batch may take, in milliseconds: batches grow and shrink to that. Default 50. */
  readonly batchMs?: number | undefined;
  /** How much of the time is spent on batches, in per cent; the rest is paused. Default 20. */
  readonly dutyPercent?: number | undefined;
  /** How long a batch may wait for a lock, in milliseconds, before it gives way. Default 100. */
  readonly lockTimeoutMs?: number | undefined;
  /** Ends the sweep after the batch that runs. What was forgotten stays so. */
  readonly signal?: AbortSignal | undefined;
}

/** What a sweep did. */
export interface Swept {
  /** `busy`: another worker sweeps. `stopped`: by the signal. */
  readonly ended: "done" | "busy" | "stopped";
  readonly identities: number;
  readonly batches: number;
  /** Batches that gave way to somebody's lock, and were tried again. */
  readonly gaveWay: number;
}

const fewestPages = 8;
const mostPages = 4_096;

/**
 * One sweep over the ledger that forgets what is older than the window: in batches, each in a transaction of its own on
 * a connection of its own, which give way to claims and pause between. A batch that was cut off is repeated by the next
 * sweep. What comes in while it runs is younger than any window.
 */
export async function sweep(driver: Driver, options: SweepOptions): Promise<Swept> {
  const { signal, windowMs } = options;
  const schema = options.schema ?? "inbox";
  wholeNumber("windowMs", windowMs, windowMs, 1, 3_155_760_000_000);
  const batchMs = wholeNumber("batchMs", options.batchMs, 50, 1, 60_000);
  const dutyPercent = wholeNumber("dutyPercent", options.dutyPercent, 20, 1, 100);
  const lockTimeoutMs = wholeNumber("lockTimeoutMs", options.lockTimeoutMs, 100, 1, 60_000);
  const connection = await driver.connect(5_000);
  let [identities, batches, gaveWay, page, pages] = [0, 0, 0, 0, fewestPages];
  try {
    await checkSchema(connection, schema);
    const last = await ledgerPages(connection, schema);
    while (page < last) {
      if (signal?.aborted === true) return { ended: "stopped", identities, batches, gaveWay };
      const start = performance.now();
      const batch = { firstPage: page, pages, olderThanMs: windowMs, lockTimeoutMs };
      const forgotten = await orGiveWay(connection, schema, batch);
      const took = performance.now() - start;
      if (forgotten === "gave way") gaveWay += 1;
      else if (forgotten.kind === "busy") return { ended: "busy", identities, batches, gaveWay };
      else {
        identities += forgotten.identities;
        batches += 1;
        page += pages;
      }
      const factor = forgotten === "gave way" ? 0.5 : Math.min(2, Math.max(0.5, batchMs / Math.max(took, 1)));
      pages = Math.min(mostPages, Math.max(fewestPages, Math.round(pages * factor)));
      await rest((took * (100 - dutyPercent)) / dutyPercent, signal);
    }
    return { ended: "done", identities, batches, gaveWay };
  } finally {
    connection.release();
  }
}

async function orGiveWay(
  connection: DriverConnection,
  schema: string,
  batch: Parameters<typeof forgetBatch>[2],
) {
  try {
    return await forgetBatch(connection, schema, batch);
  } catch (error) {
    // A lock that was not had in time, or a deadlock that this side lost.
    if (hasCode(error, "55P03") || hasCode(error, "40P01")) return "gave way";
    throw error;
  }
}

const rest = async (ms: number, signal: AbortSignal | undefined): Promise<void> =>
  pause(ms, undefined, signal === undefined ? {} : { signal }).catch((error: unknown) => {
    if (signal?.aborted !== true) throw error;
  });

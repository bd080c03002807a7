import { InboxError } from "../errors.ts";
import { showValue } from "../message/show-value.ts";
import { driverFor } from "../store/postgres/drivers/detect.ts";
import type { Decider } from "../store/quarantine-store.ts";
import { wholeNumber } from "../whole-number.ts";
import { replayTables, type CaughtUp, type ReplayRow, type RetiredConsumer } from "./replay-tables.ts";

/** Where the tables are. */
export interface ReplayTablesOptions {
  /** The schema that holds the inbox's tables. Default `inbox`. */
  readonly schema?: string | undefined;
  /** How long to wait for a connection, in milliseconds. Default 5,000. */
  readonly connectTimeoutMs?: number | undefined;
}

export interface RetireOptions extends Decider, ReplayTablesOptions {
  /** Who is retired: `projection("balances", 2)`. */
  readonly consumer: string;
  /** Who has taken over: `projection("balances", 3)`. */
  readonly successor: string;
  /**
   * How many of its messages the successor may not have applied: those that it has never seen, and those that it has in
   * pending or in quarantine. Default 0.
   */
  readonly allowMissing?: number | undefined;
}

const tablesOf = (pool: unknown, { schema, connectTimeoutMs }: ReplayTablesOptions) =>
  replayTables(driverFor(pool), schema ?? "inbox", connectTimeoutMs ?? 5_000);

/**
 * How a successor stands against the consumer it shall take over from, as of one moment: a scan of the ledger. What the
 * consumer has forgotten is not compared.
 */
export const caughtUp = (
  pool: unknown,
  { consumer, successor, ...options }: Pick<RetireOptions, "consumer" | "successor"> & ReplayTablesOptions,
): Promise<CaughtUp> => tablesOf(pool, options).caughtUp(consumer, successor);

/**
 * Retires a consumer when its successor has applied everything that it has: from then on no run and no worker of it
 * starts, and those that run end within seconds. Resolves with how both stand. Rejects with `not-caught-up`, with
 * `consumer-retired` if it is retired already, and with `decision-needs` without who and why.
 */
export async function retire(pool: unknown, options: RetireOptions): Promise<CaughtUp> {
  const { consumer, successor, by, why } = options;
  const allowed = wholeNumber("allowMissing", options.allowMissing, 0, 0, Number.MAX_SAFE_INTEGER);
  if (!isText(consumer) || !isText(successor) || consumer === successor) {
    throw new InboxError(
      "invalid-option",
      `consumer and successor must be two names; got ${showValue(consumer)} and ${showValue(successor)}.`,
    );
  }
  if (!isText(by) || !isText(why))
    throw new InboxError("decision-needs", "A retirement is kept with who decided it (by) and why.");
  const tables = tablesOf(pool, options);
  const [before] = await tables.retired(consumer);
  if (before !== undefined) throw alreadyRetired(before);
  const standing = await tables.caughtUp(consumer, successor);
  const missing = standing.missing + standing.stored;
  if (standing.applied === 0) {
    throw new InboxError("not-caught-up", `${showValue(consumer)} has applied nothing: is that its name?`);
  }
  if (missing > allowed) {
    throw new InboxError(
      "not-caught-up",
      `Of ${standing.applied} messages that ${showValue(consumer)} has applied, ${showValue(successor)} has never seen ${standing.missing}, and has ${standing.stored} in pending or in quarantine.`,
    );
  }
  const { applied } = standing;
  if (await tables.retire({ consumer, successor, by, why, applied, missing })) return standing;
  const [other] = await tables.retired(consumer);
  throw alreadyRetired(other);
}

/** Consumers that are retired, oldest first. */
export const retiredConsumers = (
  pool: unknown,
  options: ReplayTablesOptions = {},
): Promise<readonly RetiredConsumer[]> => tablesOf(pool, options).retired(undefined);

/** The last runs of replays, newest first: who asked for them, why, and what came of it. */
export const listReplays = (
  pool: unknown,
  {
    consumer,
    limit,
    ...options
  }: ReplayTablesOptions & {
    /** Of this name alone. */
    readonly consumer?: string | undefined;
    /** Default 100. */
    readonly limit?: number | undefined;
  } = {},
): Promise<readonly ReplayRow[]> => tablesOf(pool, options).list(consumer, limit ?? 100);

const alreadyRetired = (retired: RetiredConsumer | undefined): InboxError =>
  new InboxError(
    "consumer-retired",
    retired === undefined
      ? "The consumer is retired already."
      : `${showValue(retired.consumer)} is retired already: by ${showValue(retired.by)}, for ${showValue(retired.successor)}.`,
  );

const isText = (text: unknown): boolean => typeof text === "string" && text.trim() !== "";

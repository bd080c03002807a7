import assert from "node:assert/strict";
import type test from "node:test";
import { createInbox, createMessage, postgres, type InboxOptions } from "../../src/index.ts";
import type { RunOptions } from "../../src/inbox/run.ts";
import type {
  Delivery,
  Intake,
  LogAsk,
  LogPosition,
  Settlement,
  Source,
  TakenCursor,
} from "../../src/sources/source.ts";
import { migrate } from "../../src/store/postgres/migrate.ts";
import { testDatabase } from "../support/postgres.ts";

/** A log in the hands of a member. */
export type Taken = Extract<TakenCursor, { readonly kind: "taken" }>;

/** A source of logs under a test's hand. */
function logSource() {
  let started: (intake: Intake) => void;
  const intake = new Promise<Intake>((resolve) => (started = resolve));
  const open = new Map<Delivery, (settlement: Settlement) => void>();
  const source: Source = {
    name: "log",
    start: async (given) => started(given),
    async settle(list) {
      for (const [delivery, settlement] of list) open.get(delivery)?.(settlement);
    },
    stop: async () => undefined,
    close: async () => undefined,
  };
  return {
    source,
    async take(log: string, ask: Partial<LogAsk> = {}): Promise<TakenCursor> {
      const given: LogAsk = {
        ...{ cluster: "c", incarnation: "t1", part: "0", begin: 0n, accept: [] },
        ...ask,
      };
      return (await intake).takeCursor!(log, given);
    },
    /** Delivers these offsets, in order, each as the one behind the one before. */
    async deliver(taken: Taken, offsets: readonly number[], record: Rec = {}): Promise<Settlement[]> {
      let previous = record.previous === undefined ? taken.applied : BigInt(record.previous);
      const deliveries = offsets.map((offset): Delivery => {
        const id = `${taken.incarnation}/0/${offset}`;
        const payload = JSON.stringify({ offset });
        const key = record.key?.(offset);
        const received = createMessage({ producer: taken.position.log, id, payload, key });
        const position: LogPosition = { ...taken.position, record: { offset: BigInt(offset), previous } };
        previous = BigInt(offset);
        return { received, redelivered: record.redelivered ?? false, position };
      });
      const settled = deliveries.map(
        (delivery) => new Promise<Settlement>((resolve) => open.set(delivery, resolve)),
      );
      void (await intake).deliver(deliveries);
      return Promise.all(settled);
    },
    intake,
  };
}

export interface Rec {
  readonly previous?: number;
  readonly redelivered?: boolean;
  readonly key?: (offset: number) => string;
}

type Before = (offset: number, by: string) => unknown;

/** A schema with members of one consumer, each with a source of logs under the test's hand. */
export async function openLogs(t: test.TestContext) {
  const { url, schema, pool } = await testDatabase(t, { max: 14 });
  await migrate(pool, { schema });
  await pool.query("create table applied (position bigserial, log text, record bigint, by text)");
  const member = (
    by: string,
    before: Before = () => undefined,
    options: Partial<InboxOptions<undefined>> & RunOptions = {},
    over: unknown = pool,
  ) => {
    const hand = logSource();
    const { mode, ...inboxOptions } = options;
    const inbox = createInbox({
      store: postgres(over, { schema }),
      ...{ consumer: "accounting", lanes: 3, maxBatch: 20 },
      retry: { delayMs: 20, jitter: 0, maxAttempts: 3, environment: { delayMs: 20 } },
      ...inboxOptions,
    });
    const run = inbox.run(
      hand.source,
      async (message, { tx }) => {
        const { offset } = message.json() as { offset: number };
        const log = message.producer;
        const text = `insert into ${schema}.applied (log, record, by) values ($1, $2, $3)`;
        await tx.query(text, [log, offset, by]);
        return await before(offset, by);
      },
      { stopTimeoutMs: 200, ...(mode === undefined ? {} : { mode }) },
    );
    t.after(() => run.stop());
    return { ...hand, run };
  };
  const applied = async (log = "log"): Promise<number[]> =>
    (
      await pool.query<{ record: string }>("select record from applied where log = $1 order by position", [
        log,
      ])
    ).rows.map(({ record }) => Number(record));
  const count = async (table: string): Promise<number> =>
    Number((await pool.query<{ n: string }>(`select count(*) as n from ${schema}.${table}`)).rows[0]?.n);
  const cursor = async (log = "log"): Promise<number> =>
    Number(
      (await pool.query<{ applied: string }>(`select applied from ${schema}.log_owner where log = $1`, [log]))
        .rows[0]?.applied,
    );
  return { member, applied, count, cursor, pool, schema, url };
}

export const upTo = (n: number, from = 0): number[] => Array.from({ length: n }, (_, i) => from + i);

export async function taken(of: Promise<TakenCursor>): Promise<Taken> {
  const found = await of;
  assert.equal(found.kind, "taken");
  return found;
}

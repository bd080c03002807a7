import { randomBytes } from "node:crypto";
import type pg from "pg";
import { identityDigest } from "../../src/message/identity.ts";
import { migrate } from "../../src/store/postgres/migrate.ts";
import { postgres, type PostgresOptions } from "../../src/store/postgres/postgres.ts";
import type {
  Lease,
  PendingMessage,
  PutOff,
  StoredMessage,
  Taken,
  TakeRequest,
} from "../../src/store/pending.ts";
import type { QuarantineInsert } from "../../src/store/quarantine-entry.ts";
import type { BeginOptions, LaneTransaction, Store } from "../../src/store/store.ts";
import { onTestEnd, type Scope } from "../support/cleanup.ts";
import { until } from "../support/in-time.ts";
import { testDatabase, type TestDatabase } from "../support/postgres.ts";

export const name = { consumer: "accounting", handlerVersion: "1" };

export interface TestStore extends TestDatabase {
  readonly store: Store;
  /** Another store over the same tables. */
  readonly storeWith: (options: PostgresOptions) => Store;
  /** Takes what there is for a worker of its own. */
  readonly take: (request?: Partial<TakeRequest>) => Promise<Taken>;
  /** A lane's transaction. */
  readonly begin: (options?: Partial<BeginOptions>) => Promise<LaneTransaction>;
  /** Handles taken messages: hold, finish, commit. Resolves with the ids that were held. */
  readonly handle: (messages: readonly PendingMessage[]) => Promise<readonly string[]>;
  /** Ends the leases of all lanes as time would. */
  readonly expireLeases: () => Promise<void>;
  /** Moves all that is scheduled, and all keys that wait for a time, to now. */
  readonly makeDue: () => Promise<void>;
  /** Rows of a query, in this schema. */
  readonly rows: <Row>(text: string, values?: readonly unknown[]) => Promise<readonly Row[]>;
  /** Resolves when so many of this test's statements wait for a lock. */
  readonly untilBlocked: (statements?: number) => Promise<void>;
  /** A connection of its own with an open transaction, rolled back after the test. */
  readonly session: () => Promise<pg.PoolClient>;
}

export async function testStore(t: Scope, options: PostgresOptions = {}): Promise<TestStore> {
  const application = `store_${randomBytes(6).toString("hex")}`;
  const database = await testDatabase(t, { application_name: application });
  const { pool, schema } = database;
  await migrate(pool, { schema });
  const storeWith = (more: PostgresOptions): Store => postgres(pool, { schema, ...options, ...more });
  const store = storeWith({});
  await store.pending.openLanes(name.consumer);
  const begin = (more: Partial<BeginOptions> = {}): Promise<LaneTransaction> =>
    store.begin(name, {
      ...{ isolation: "read committed", claimLockTimeoutMs: 5_000, workLockTimeoutMs: undefined },
      ...{ connectTimeoutMs: 30_000, ...more },
    });
  return {
    ...database,
    ...{ store, storeWith, begin },
    take: (request = {}) =>
      store.pending.take(name.consumer, {
        ...{ workerId: randomWorker(), leaseMs: 60_000, maxLanes: 64, maxMessages: 1_000 },
        ...{ maxBytes: 32 * 1024 * 1024, done: [], ...request },
      }),
    async handle(messages) {
      const tx = await begin();
      const gone = await tx.hold(messages);
      const held = messages.filter(({ digest }) => !gone.has(digest));
      await tx.finish(held);
      await tx.commit();
      return idsOf(held);
    },
    expireLeases: async () =>
      void (await pool.query(
        "update pending_lane set leased_until = clock_timestamp() - interval '1 ms' where leased_until is not null",
      )),
    async makeDue() {
      await pool.query("update pending set due_at = clock_timestamp() where state = 'scheduled'");
      await pool.query("update parked_key set due_at = clock_timestamp() where due_at < 'infinity'");
    },
    rows: async <Row>(text: string, values: readonly unknown[] = []) =>
      (await pool.query(text, [...values])).rows as Row[],
    untilBlocked: (statements = 1) =>
      until(`${statements} statements wait for a lock`, async () => {
        const { rows } = await pool.query<{ n: number }>(
          `select count(*)::int as n from pg_stat_activity
            where application_name = $1 and cardinality(pg_blocking_pids(pid)) > 0`,
          [application],
        );
        const { n } = rows[0]!;
        return { holds: n >= statements, answer: `${n} wait` };
      }),
    async session() {
      const client = await pool.connect();
      let over = false;
      onTestEnd(t, async () => {
        if (over) return;
        over = true;
        await client.query("rollback").catch(() => undefined);
        client.release();
      });
      await client.query("begin");
      return client;
    },
  };
}

export const randomWorker = (): string =>
  randomBytes(16)
    .toString("hex")
    .replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");

/** A message as it comes to the store. */
export function stored(id: string, more: Partial<StoredMessage> = {}): StoredMessage {
  const identity = { tenant: "", producer: "shop", id };
  return {
    digest: identityDigest(name.consumer, identity),
    ...identity,
    fingerprint: { mode: "b", digest: "01".repeat(32) },
    key: undefined,
    type: undefined,
    time: undefined,
    headers: {},
    payload: Buffer.from(`body of ${id}`),
    ...more,
  };
}

/** Messages of one key, by its name and a number: `a1` is a message of key `a`. */
export const keyed = (...ids: readonly string[]): readonly StoredMessage[] =>
  ids.map((id) => stored(id, { key: id.replace(/\d+$/, "") }));

export const idsOf = (messages: readonly { readonly id: string }[]): readonly string[] =>
  messages.map(({ id }) => id);

export const leasesOf = (messages: readonly PendingMessage[]): readonly Lease[] => [
  ...new Map(messages.map(({ lease }) => [`${lease.lane}:${lease.token}`, lease])).values(),
];

/** A failed attempt of a message, in hand or not. */
export const failed = (message: StoredMessage | PendingMessage, more: Partial<PutOff> = {}): PutOff => ({
  message,
  pending: "lease" in message ? { lease: message.lease, deferrals: message.deferrals } : undefined,
  ...{ code: "handler-failed", error: "no such account", counts: true, park: message.key !== undefined },
  delayAfter: () => 60_000,
  ...more,
});

/** An entry for quarantine, of a message in hand or not. */
export const entryOf = (
  message: StoredMessage | PendingMessage,
  more: Partial<QuarantineInsert> = {},
): QuarantineInsert => ({
  identity: { digest: message.digest, tenant: message.tenant, producer: message.producer, id: message.id },
  rawIdentity: undefined,
  ...{ key: message.key, type: message.type, headers: message.headers, payload: message.payload },
  fingerprint: message.fingerprint,
  ...{ code: "handler-rejected", error: "no such account", attempts: 1, blocking: message.key !== undefined },
  pending: "lease" in message ? { lease: message.lease, position: message.position } : undefined,
  ...more,
});

import type { Scope } from "../support/cleanup.ts";
import { testDatabase, type TestDatabase, type TestPoolOptions } from "../support/postgres.ts";
import { migrate } from "../../src/store/postgres/migrate.ts";
import { postgres } from "../../src/store/postgres/postgres.ts";
import { createInbox, type Inbox } from "../../src/inbox/create-inbox.ts";
import type { InboxOptions } from "../../src/inbox/options.ts";
import type { MessageInput } from "../../src/message/message.ts";
import type { MessageHandler } from "../../src/inbox/handler.ts";
import type { Store } from "../../src/store/store.ts";

export interface TestInbox extends TestDatabase {
  readonly store: Store;
  readonly inbox: Inbox;
  /** Another inbox over the same tables. */
  readonly inboxWith: (options: Partial<InboxOptions>) => Inbox;
  /** How often each message took effect, by id. */
  readonly effects: () => Promise<Record<string, number>>;
  readonly quarantined: () => Promise<
    { code: string; message_id: string | null; attempts: number; payload: Buffer | null }[]
  >;
}

/** An inbox over tables of the test's own, and a table `effect` for handlers to write into. */
export async function testInbox(
  t: Scope,
  options: Partial<InboxOptions> = {},
  poolOptions: TestPoolOptions = {},
): Promise<TestInbox> {
  const database = await testDatabase(t, poolOptions);
  const { pool, schema } = database;
  await migrate(pool, { schema });
  await pool.query(
    "create table effect (message_id text not null, at timestamptz default clock_timestamp())",
  );
  await pool.query("create table account (id int primary key, balance bigint not null default 0)");
  const store = postgres(pool, { schema });
  const inboxWith = (more: Partial<InboxOptions>): Inbox =>
    createInbox({ store, consumer: "accounting", retry: { delayMs: 10 }, ...options, ...more });
  return {
    ...database,
    store,
    inbox: inboxWith({}),
    inboxWith,
    async effects() {
      const { rows } = await pool.query<{ message_id: string; n: number }>(
        "select message_id, count(*)::int as n from effect group by message_id",
      );
      return Object.fromEntries(rows.map((row) => [row.message_id, row.n]));
    },
    async quarantined() {
      const { rows } = await pool.query<{
        code: string;
        message_id: string | null;
        attempts: number;
        payload: Buffer | null;
      }>("select code, message_id, attempts, payload from quarantine order by id");
      return rows;
    },
  };
}

export const message = (id: string, more: Partial<MessageInput> = {}): MessageInput => ({
  producer: "payments",
  id,
  payload: `{"id":"${id}"}`,
  ...more,
});

/** Writes one row a call. */
export const recordEffect: MessageHandler = async ({ id }, { tx }) => {
  await tx.query("insert into effect (message_id) values ($1)", [id]);
};

/** Something to wait for that a test opens itself. */
export function gate(): { readonly opened: Promise<void>; readonly open: () => void } {
  let open: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open: () => open() };
}

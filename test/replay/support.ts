import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestEnd, type Scope } from "../support/cleanup.ts";
import { testInbox, type TestInbox } from "../inbox/support.ts";
import { replay, type Replay, type ReplayOptions } from "../../src/replay/replay-run.ts";
import { replayFile, type ReplaySource } from "../../src/replay/replay-source.ts";
import type { MessageInput } from "../../src/message/message.ts";

export interface TestReplay extends TestInbox {
  /** Writes lines, and returns them as a replay's source. */
  readonly lines: (name: string, messages: readonly Payment[]) => ReplaySource;
  readonly path: (name: string) => string;
  readonly replay: (options: Partial<ReplayOptions> & Pick<ReplayOptions, "policy" | "source">) => Replay;
  /** A column of a table, by its name. */
  readonly column: <Value>(sql: string) => Promise<readonly Value[]>;
}

export interface Payment {
  readonly id: string;
  readonly account: string;
  readonly amount: number;
}

export const payments = (count: number, from = 0): readonly Payment[] =>
  Array.from({ length: count }, (_, at) => ({
    id: `p-${from + at}`,
    account: `a${(from + at) % 7}`,
    amount: (from + at) % 11,
  }));

export const lineOf = (payment: Payment): string => JSON.stringify(payment);

/** As the lines' source makes them. */
export const messageOf = (payment: Payment): MessageInput => ({
  producer: "shop",
  id: payment.id,
  payload: lineOf(payment),
  key: payment.account,
});

export const why = { by: "ann", why: "the sums were wrong" };

/** An inbox of the consumer `accounting`, and replays over the same tables. */
export async function testReplay(t: Scope): Promise<TestReplay> {
  const inbox = await testInbox(t);
  const { pool, schema } = inbox;
  await pool.query("create table done (consumer text, message_id text)");
  const directory = mkdtempSync(join(tmpdir(), "inbox-replay-"));
  onTestEnd(t, () => rmSync(directory, { recursive: true, force: true }));
  const path = (name: string): string => join(directory, name);
  return {
    ...inbox,
    path,
    lines(name, messages) {
      writeFileSync(path(name), messages.map((one) => `${lineOf(one)}\n`).join(""));
      return fileOf(path(name));
    },
    replay: (options) =>
      replay(pool, { schema, handler: record(String(options.policy?.kind)), ...why, ...options }),
    async column(sql) {
      const { rows } = await pool.query({ text: sql, rowMode: "array" });
      return (rows as unknown[][]).map(([value]) => value) as never;
    },
  };
}

export const fileOf = (from: string): ReplaySource =>
  replayFile({ from, identity: { idPath: "id", producer: "shop", keyPath: "account" } });

/** Writes one row a call. */
export const record =
  (consumer: string): ReplayOptions["handler"] =>
  async ({ id }, { tx }) => {
    await tx.query("insert into done (consumer, message_id) values ($1, $2)", [consumer, id]);
  };

/** How many effects wait to be sent. */
export async function effects(pool: TestInbox["pool"]): Promise<number> {
  const { rows } = await pool.query<{ n: number }>(
    "select ((select count(*) from outbox) + (select coalesce(sum(size), 0) from outbox_bundle))::int as n",
  );
  return rows[0]!.n;
}

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import test from "node:test";
import { postgres } from "../../src/store/postgres/postgres.ts";
import type { QuarantineInsert } from "../../src/store/quarantine-entry.ts";
import { testDatabase } from "../support/postgres.ts";
import type { Scope } from "../support/cleanup.ts";
import { runInbox, type RunResult } from "./run-inbox.ts";

const hostile = "id\u0007\u001b[2J\u202eend";

function entry(changes: Partial<QuarantineInsert>): QuarantineInsert {
  return {
    identity: { digest: randomBytes(16).toString("hex"), tenant: "", producer: "shop", id: "order-1" },
    rawIdentity: undefined,
    key: undefined,
    type: undefined,
    headers: {},
    payload: Buffer.from('{"total":1}'),
    fingerprint: { mode: "b", digest: randomBytes(32).toString("hex") },
    code: "handler-rejected",
    error: "unknown account",
    attempts: 1,
    ...changes,
  };
}

async function prepared(t: Scope): Promise<{
  readonly put: (changes: Partial<QuarantineInsert>) => Promise<void>;
  readonly inbox: (...args: readonly string[]) => Promise<RunResult>;
}> {
  const { url, schema, pool } = await testDatabase(t);
  const inbox = (...args: readonly string[]): Promise<RunResult> =>
    runInbox([...args, "--schema", schema], { env: { DATABASE_URL: url } });
  const migrated = await inbox("migrate");
  assert.equal(migrated.code, 0, migrated.stderr);
  const store = postgres(pool, { schema });
  return {
    inbox,
    put: async (changes) =>
      void (await store.quarantine({ consumer: "accounting", handlerVersion: "3" }, entry(changes))),
  };
}

const objects = (text: string): Record<string, unknown>[] =>
  text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Record<string, unknown>);

test("list shows open entries as a table and, with --json, as one object a line", async (t) => {
  const { put, inbox } = await prepared(t);
  const empty = await inbox("quarantine", "list");
  assert.deepEqual([empty.code, empty.stdout], [0, ""]);
  assert.match(empty.stderr, /Nothing is in quarantine/);

  await put({});
  await put({ code: "payload-conflict", error: "another payload" });
  const table = await inbox("quarantine", "list");
  assert.equal(table.code, 0, table.stderr);
  assert.match(table.stdout, /order-1.*handler-rejected.*unknown account/);
  assert.match(table.stdout, /payload-conflict/);

  const all = objects((await inbox("quarantine", "list", "--json")).stdout);
  assert.deepEqual(all.map(({ code }) => code).sort(), ["handler-rejected", "payload-conflict"]);
  const one = objects((await inbox("quarantine", "list", "--json", "--code", "payload-conflict")).stdout);
  assert.deepEqual(
    one.map(({ error }) => error),
    ["another payload"],
  );
  const other = await inbox("quarantine", "list", "--json", "--consumer", "another");
  assert.equal(other.stdout, "");
});

test("list can be read on from the last entry it showed", async (t) => {
  const { put, inbox } = await prepared(t);
  for (const id of ["a", "b", "c"]) {
    await put({ identity: { digest: randomBytes(16).toString("hex"), tenant: "", producer: "shop", id } });
  }
  const first = await inbox("quarantine", "list", "--json", "--limit", "2");
  const rows = objects(first.stdout);
  assert.equal(rows.length, 2);
  assert.match(first.stderr, new RegExp(`--after ${String(rows[1]!["id"])}`));
  const rest = objects(
    (await inbox("quarantine", "list", "--json", "--after", String(rows[1]!["id"]))).stdout,
  );
  assert.deepEqual([...rows, ...rest].map(({ messageId }) => messageId).sort(), ["a", "b", "c"]);
});

test("what a producer wrote cannot steer the terminal", async (t) => {
  const { put, inbox } = await prepared(t);
  await put({
    identity: { digest: randomBytes(16).toString("hex"), tenant: "", producer: "shop", id: hostile },
    error: `${hostile}\r\nforged line`,
    headers: { [hostile]: hostile },
    payload: Buffer.from(hostile),
  });
  const table = await inbox("quarantine", "list");
  const id = String(objects((await inbox("quarantine", "list", "--json")).stdout)[0]!["id"]);
  const shown = await inbox("quarantine", "show", id);
  for (const { code, stdout } of [table, shown]) {
    assert.equal(code, 0);
    assert.doesNotMatch(stdout, /[\u0007\u001b\r\u202e]/);
    assert.doesNotMatch(stdout, /^forged line/m);
  }
  const raw = await inbox("quarantine", "show", id, "--payload");
  assert.equal(raw.stdout, hostile);
});

test("show gives everything of one entry, bytes that are no text included", async (t) => {
  const { put, inbox } = await prepared(t);
  const payload = Buffer.from([0, 255, 254, 10, 13]);
  await put({ payload, key: "account-7", type: "payment", headers: { trace: "t-1" }, attempts: 4 });
  const id = String(objects((await inbox("quarantine", "list", "--json")).stdout)[0]!["id"]);

  const text = await inbox("quarantine", "show", id);
  assert.match(text.stdout, /key +account-7/);
  assert.match(text.stdout, /attempts +4/);
  assert.match(text.stdout, /header trace +t-1/);
  assert.match(text.stdout, /5 bytes that are no text/);

  const [json] = objects((await inbox("quarantine", "show", id, "--json")).stdout);
  assert.equal(json!["payloadBase64"], payload.toString("base64"));
  assert.deepEqual(
    [json!["messageId"], json!["consumer"], json!["handlerVersion"]],
    ["order-1", "accounting", "3"],
  );
});

test("an entry that is not there fails, whatever its id looks like", async (t) => {
  const { inbox } = await prepared(t);
  for (const id of ["17", "x'; drop", "99999999999999999999"]) {
    const { code, stdout, stderr } = await inbox("quarantine", "show", id);
    assert.deepEqual([code, stdout], [1, ""]);
    assert.match(stderr, /There is no entry/);
  }
});

test("a database without the inbox's tables says which command makes them", async (t) => {
  const { url, schema } = await testDatabase(t);
  const { code, stderr } = await runInbox(["quarantine", "list", "--schema", schema], {
    env: { DATABASE_URL: url },
  });
  assert.equal(code, 1);
  assert.match(stderr, /Run: inbox migrate --schema/);
});

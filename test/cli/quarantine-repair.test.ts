import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import test from "node:test";
import { entryId, put } from "../quarantine/support.ts";
import { objects, testDesk } from "./desk.ts";
import { handlerPath, runCase } from "./run-case.ts";
import { runInbox } from "./run-inbox.ts";

const why = ["--why", "amount was a text", "--by", "ann"];

test("repair shows what it changes, and changes it: the same identity, both bodies", async (t) => {
  const { store, inbox, file } = await testDesk(t);
  await put(store, "m1", { payload: '{"account":"a","amount":"5"}' });
  const id = await entryId(store, "m1");
  const fixed = file("fixed.json", '{"account":"a","amount":5}');
  const tried = await inbox("quarantine", "repair", id, "--payload", fixed, "--dry-run");
  assert.equal(tried.code, 0, tried.stderr);
  assert.match(tried.stdout, /^-  "amount": "5"$/m);
  assert.match(tried.stdout, /^\+  "amount": 5$/m);
  assert.match(tried.stderr, /would be handled as shop m1/);
  assert.equal(await store.quarantined.count({}), 1);

  const done = await inbox("quarantine", "repair", id, "--payload", fixed, "--json", ...why);
  assert.equal(done.code, 0, done.stderr);
  const [answer] = objects(done.stdout);
  assert.deepEqual([answer!["kind"], (answer!["message"] as { id: string }).id], ["repair", "m1"]);
  const shown = await inbox("quarantine", "show", id);
  assert.match(shown.stdout, /status +repaired/);
  assert.match(shown.stdout, /payload +\{"account":"a","amount":"5"\}/);
  assert.match(shown.stdout, /repaired payload +\{"account":"a","amount":5\}/);
  const again = await inbox("quarantine", "repair", id, "--payload", fixed, ...why);
  assert.equal(again.code, 1);
  assert.match(again.stderr, /repaired: decided by "ann"/);
});

test("repair gives an identity to what had none, and a conflict one of its own", async (t) => {
  const { store, pool, inbox } = await testDesk(t);
  await put(store, "", { named: false, code: "no-identity", rawIdentity: { producer: "shop" } });
  await put(store, "m1", { code: "payload-conflict" });
  await pool.query("update message set processed_at = now()");
  const [conflict, lost] = (await store.quarantined.list({})).map(({ id }) => id);
  const half = await inbox("quarantine", "repair", lost!, "--tenant", "t", ...why);
  assert.equal(half.code, 1);
  assert.match(half.stderr, /has no id/);
  assert.equal((await inbox("quarantine", "repair", lost!, "--id", "m2", ...why)).code, 0);
  const same = await inbox("quarantine", "repair", conflict!, "--type", "order", ...why);
  assert.equal(same.code, 1);
  assert.match(same.stderr, /under an id of its own/);
  assert.equal((await inbox("quarantine", "repair", conflict!, "--id", "m1b", ...why)).code, 0);
  const pending = await store.operator.listPending({});
  assert.deepEqual(pending.map(({ messageId }) => messageId).sort(), ["m1b", "m2"]);
});

test("with a handler, a repair must fit its payload schema", async (t) => {
  const { store, inbox, file } = await testDesk(t);
  await put(store, "m1");
  const id = await entryId(store, "m1");
  const zod = JSON.stringify(import.meta.resolve("zod"));
  const handler = file(
    "handler.mjs",
    `import { z } from ${zod};
     export const options = { consumer: "accounting", payloadSchema: z.object({ amount: z.number() }) };
     export default () => undefined;`,
  );
  const repair = (name: string, content: string) =>
    inbox("quarantine", "repair", id, "--payload", file(name, content), "--handler", handler, ...why);
  const wrong = await repair("wrong.json", '{"amount":"5"}');
  assert.equal(wrong.code, 1);
  assert.match(wrong.stderr, /does not fit the schema: amount/);
  assert.equal((await repair("right.json", '{"amount":5}')).code, 0);
});

test("dry-run shows what a handler would do with an entry or its repair, and does none of it", async (t) => {
  const { store, pool, url, schema, file } = await testDesk(t);
  await pool.query("create table account (id text primary key, balance bigint not null)");
  await put(store, "m1", { payload: '{"account":"a","amount":5,"kind":"never"}' });
  const id = await entryId(store, "m1");
  // The handler's table is found by the search path.
  const env = { DATABASE_URL: url, PGOPTIONS: `-c search_path=${schema}` };
  const dryRun = (...args: string[]) =>
    runInbox(["quarantine", "dry-run", id, ...args, "--schema", schema], { env });
  const rejected = await dryRun(handlerPath("credit"));
  assert.equal(rejected.code, 3, rejected.stderr);
  assert.match(rejected.stdout, /It would fail \(permanent.*an unknown kind of account/);

  const fixed = file("fixed.json", '{"account":"secret-account","amount":5}');
  const applied = await dryRun(handlerPath("credit"), "--payload", fixed);
  assert.equal(applied.code, 0, applied.stderr);
  assert.match(applied.stdout, /1\. insert into account \(id, balance\) values \(\$1, \$2\)/);
  assert.match(applied.stdout, /INSERT 1\nIt would be applied\. Nothing was\./);
  assert.doesNotMatch(applied.stdout, /secret-account/);
  const valued = await dryRun(handlerPath("credit"), "--payload", fixed, "--values", "--json");
  assert.match(valued.stdout, /secret-account/);
  const other = await dryRun(handlerPath("record"));
  assert.equal(other.code, 2);
  assert.match(other.stderr, /is of accounting, and the handler is of recording/);

  assert.deepEqual((await pool.query("select * from account")).rows, []);
  assert.equal(await store.quarantined.count({}), 1);
  assert.deepEqual(await store.quarantined.decisions(10), []);
});

test("what is exported comes back by import, and a broken file imports nothing", async (t) => {
  const from = await testDesk(t);
  const to = await testDesk(t);
  const payload = randomBytes(300);
  await put(from.store, "m1", { payload, headers: { "h\n": "\u001b[2J" } });
  await put(from.store, "m2", { payload: null });
  const exported = await from.inbox("quarantine", "export");
  assert.equal(exported.code, 0, exported.stderr);
  assert.match(exported.stderr, /2 entries exported/);
  assert.doesNotMatch(exported.stdout, /\u001b/);

  const broken = to.file("broken.ndjson", `${exported.stdout}\n{"inboxQuarantine":1}\n`);
  const refused = await to.inbox("quarantine", "import", broken);
  assert.deepEqual([refused.code, refused.stdout], [1, ""]);
  assert.match(refused.stderr, /Line 4: /);
  assert.equal(await to.store.quarantined.count({}), 0);

  const good = to.file("good.ndjson", exported.stdout);
  const looked = await to.inbox("quarantine", "import", good, "--dry-run");
  assert.match(looked.stderr, /2 lines are in order/);
  assert.equal(await to.store.quarantined.count({}), 0);
  const imported = await to.inbox("quarantine", "import", good, "--json");
  assert.deepEqual(objects(imported.stdout), [{ lines: 2, imported: 2, known: 0, applied: 0, decided: 0 }]);
  const entry = await to.store.quarantined.show(await entryId(to.store, "m1"));
  assert.deepEqual([...entry!.payload!], [...payload]);
  assert.deepEqual(entry!.headers, { "h\n": "\u001b[2J" });

  const again = await runInbox(["quarantine", "import", "-", "--json", "--schema", to.schema], {
    env: { DATABASE_URL: to.url },
    input: exported.stdout,
  });
  assert.deepEqual(objects(again.stdout), [{ lines: 2, imported: 0, known: 2, applied: 0, decided: 0 }]);
  assert.equal((await to.inbox("quarantine", "import", "no-such-file")).code, 2);
});

test("payload keys come from a module: bodies open with it, are hidden as it says, and it is asked for without it", async (t) => {
  const key = randomBytes(32);
  const desk = await testDesk(t, { payloadKeys: { current: () => ({ id: "k1", key }), byId: () => key } });
  await put(desk.store, "m1", { payload: '{"card":"4111","amount":5}' });
  const id = await entryId(desk.store, "m1");
  const config = join(import.meta.dirname, "handlers", "sealing.ts");
  const env = { DATABASE_URL: desk.url, TEST_PAYLOAD_KEY: key.toString("hex") };
  const inbox = (...args: string[]) => runInbox([...args, "--schema", desk.schema], { env });

  const shown = await inbox("quarantine", "show", id, "--config", config);
  assert.equal(shown.code, 0, shown.stderr);
  assert.match(shown.stdout, /payload +\{"card":"\*\*\*","amount":5\}/);
  assert.match(shown.stdout, /sealed with +k1/);
  const byVariable = await runInbox(["quarantine", "show", id, "--payload", "--schema", desk.schema], {
    env: { ...env, INBOX_CONFIG: config },
  });
  assert.equal(byVariable.stdout, '{"card":"4111","amount":5}');
  const redacted = await inbox("quarantine", "export", "--bodies", "redacted", "--config", config);
  assert.doesNotMatch(redacted.stdout, /4111/);

  const without = await desk.inbox("quarantine", "show", id);
  assert.deepEqual([without.code, without.stdout], [1, ""]);
  assert.match(without.stderr, /sealed with the key "k1", and no keys were given/);
  // What needs no body needs no key.
  assert.match((await desk.inbox("quarantine", "list")).stdout, /m1/);
  assert.equal((await desk.inbox("quarantine", "retry", id, ...why)).code, 0);
  for (const { stdout, stderr } of [shown, byVariable, redacted, without]) {
    assert.ok(!(stdout + stderr).includes(key.toString("hex")));
  }
});

test("inbox run seals what it stores with the keys of the module, in quarantine and in pending", async (t) => {
  const { file, pool, env, cwd } = await runCase(t);
  const path = file("orders.ndjson", [
    { id: "bad", account: "account-s3cret", amount: 1, kind: "never" },
    { id: "behind", account: "account-s3cret", amount: 1 },
  ]);
  const config = join(import.meta.dirname, "handlers", "sealing.ts");
  const withKey = { ...env, TEST_PAYLOAD_KEY: randomBytes(32).toString("hex") };
  const { rows: before } = await pool.query<{ schema: string }>("select current_schema() as schema");
  const schema = ["--schema", before[0]!.schema];
  const settings = [...["--id-path", "id", "--producer", "shop", "--key-path", "account"], ...schema];
  const ran = await runInbox(
    ["run", handlerPath("credit"), "--source", path, "--config", config, ...settings],
    { cwd, env: withKey },
  );
  assert.equal(ran.code, 3, ran.stderr);
  const { rows } = await pool.query<{ id: string; payload: Buffer; key: string }>(
    `select id::text as id, payload, payload_key_id as key from quarantine
     union all select '', payload, payload_key_id from pending`,
  );
  assert.deepEqual(
    rows.map(({ key }) => key),
    ["k1", "k1"],
  );
  for (const { payload } of rows) assert.ok(!payload.includes("account-s3cret"));
  const id = rows.find((row) => row.id !== "")!.id;
  const shown = await runInbox(["quarantine", "show", id, "--config", config, ...schema], { env: withKey });
  assert.match(shown.stdout, /payload +\{.*account-s3cret/);
});

test("a module that holds no settings, or wrong ones, is wrong usage", async (t) => {
  const { inbox, file } = await testDesk(t);
  let n = 0;
  for (const [content, reason] of [
    ["export const something = 1;", /exports none of payloadKeys, redact, redactHeaders/],
    ["export const payloadKeys = { current: 1 };", /must have two functions/],
    ["export const redact = '/card';", /must be a list of texts/],
    ["export const redact = ['card'];", /redact\[0\]/],
  ] as const) {
    const { code, stdout, stderr } = await inbox(
      ...["quarantine", "list", "--config", file(`config-${n++}.mjs`, content)],
    );
    assert.deepEqual([code, stdout], [2, ""], stderr);
    assert.match(stderr, reason);
  }
  assert.equal((await inbox("quarantine", "list", "--config", "no-such-file.ts")).code, 2);
});

import assert from "node:assert/strict";
import test from "node:test";
import { createInbox } from "../../src/inbox/create-inbox.ts";
import type { Store } from "../../src/store/store.ts";
import { consumer, put, storedMessage } from "../quarantine/support.ts";
import { objects, testDesk } from "./desk.ts";

const name = { consumer, handlerVersion: "3" };
const hostile = "id\u0007\u001b[2J\u202eend";

const putOff = (store: Store, id: string, error = `no account ${id}`) =>
  store.pending.putOff(name, {
    message: storedMessage(id, { headers: { trace: id } }),
    pending: undefined,
    ...{ code: "handler-failed", error, counts: true, park: false },
    delayAfter: () => 3_600_000,
  });

test("pending list, show and retry", async (t) => {
  const { store, inbox } = await testDesk(t);
  const empty = await inbox("pending", "list");
  assert.deepEqual([empty.code, empty.stdout], [0, ""]);
  assert.match(empty.stderr, /Nothing is pending/);

  for (const id of ["m1", "m2"]) await putOff(store, id);
  await store.pending.accept(name, 100, [storedMessage("m3")]);
  const table = await inbox("pending", "list");
  assert.match(table.stdout, /scheduled.*m1.*no account m1/);
  assert.match(table.stdout, /ready.*m3/);
  const ids = async (...args: string[]): Promise<unknown[]> =>
    objects((await inbox("pending", "list", "--json", ...args)).stdout).map(({ messageId }) => messageId);
  assert.deepEqual(await ids(), ["m1", "m2", "m3"]);
  assert.deepEqual(await ids("--state", "ready"), ["m3"]);
  const page = await inbox("pending", "list", "--json", "--limit", "1");
  const position = String(objects(page.stdout)[0]!["position"]);
  assert.match(page.stderr, new RegExp(`--after ${position}`));
  assert.deepEqual(await ids("--after", position), ["m2", "m3"]);

  const shown = await inbox("pending", "show", "m1");
  assert.match(shown.stdout, /state +scheduled/);
  assert.match(shown.stdout, /header trace +m1/);
  assert.match(shown.stdout, /payload +\{"id":"m1"\}/);
  const missing = await inbox("pending", "show", "m9");
  assert.deepEqual([missing.code, missing.stdout], [1, ""]);

  assert.equal((await inbox("pending", "retry")).code, 2);
  const look = await inbox("pending", "retry", "m1", "--dry-run");
  assert.deepEqual([look.code, look.stdout], [0, ""]);
  assert.match(look.stderr, /m1 is scheduled/);
  assert.equal((await inbox("pending", "retry", "m3", "--dry-run")).code, 1);
  const retried = await inbox("pending", "retry", "m1", "--json");
  assert.equal(objects(retried.stdout)[0]!["due"], true);
  const twice = await inbox("pending", "retry", "m1");
  assert.equal(twice.code, 1);
  assert.match(twice.stderr, /not scheduled for later/);
  // m1 is scheduled still, for a time that has come.
  assert.deepEqual(objects((await inbox("pending", "retry", "--all", "--json")).stdout), [{ due: 1 }]);
});

test("an id that several have is asked about", async (t) => {
  const { store, inbox } = await testDesk(t);
  await putOff(store, "m1");
  await store.pending.accept({ consumer: "shipping", handlerVersion: "1" }, 100, [
    { ...storedMessage("m1"), digest: "0".repeat(32) },
  ]);
  for (const verb of ["show", "retry"]) {
    const { code, stderr } = await inbox("pending", verb, "m1");
    assert.equal(code, 2);
    assert.match(stderr, /--consumer accounting --producer shop; --consumer shipping --producer shop/);
  }
  assert.equal((await inbox("pending", "show", "m1", "--consumer", "accounting")).code, 0);
});

test("explain tells what became of a message; exit codes tell what waits for a person", async (t) => {
  const { store, inbox } = await testDesk(t);
  const own = createInbox({ store, consumer, handlerVersion: "3" });
  const shop = (id: string) => ({ producer: "shop", id, payload: "{}" });
  await own.process(shop("applied"), () => undefined);
  await putOff(store, "scheduled");
  await put(store, "rejected");
  const key = ["--consumer", consumer, "--producer", "shop"];

  const applied = await inbox("explain", "applied", ...key);
  assert.equal(applied.code, 0, applied.stderr);
  assert.match(applied.stdout, /state +applied: its effect is committed/);
  assert.match(applied.stdout, /handler version +3/);
  assert.match(applied.stdout, /fingerprint +[0-9a-f]{64} \(b\)/);
  assert.match(applied.stdout, /forgotten +not before a window is set/);
  const scheduled = await inbox("explain", "scheduled");
  assert.equal(scheduled.code, 0);
  assert.match(scheduled.stdout, /waits for +the time of its next attempt/);
  assert.match(scheduled.stdout, /next attempt +\d{4}-/);
  assert.match(
    scheduled.stdout,
    /attempts +1 failed\n +\d{4}.* handler-failed \(handler 3\): no account scheduled/,
  );
  const rejected = await inbox("explain", "rejected", ...key);
  assert.equal(rejected.code, 3);
  assert.match(rejected.stdout, /quarantine entry \d+: open, handler-rejected/);
  const [json] = objects((await inbox("explain", "rejected", "--json")).stdout);
  assert.deepEqual([json!["state"], (json!["openEntries"] as unknown[]).length], ["quarantined", 1]);
  for (const args of [[], key]) {
    const unknown = await inbox("explain", "nobody", ...args);
    assert.deepEqual([unknown.code, unknown.stdout], [1, ""]);
    assert.match(unknown.stderr, /Nothing is known of a message nobody/);
  }
});

test("what producers and handlers wrote cannot steer the terminal, wherever it is shown", async (t) => {
  const { store, inbox } = await testDesk(t);
  await putOff(store, hostile, `${hostile}\r\nforged line`);
  await put(store, `${hostile}2`, {
    error: `${hostile}\r\nforged line`,
    payload: `${hostile}\n`,
    key: hostile,
  });
  const [{ id } = { id: "" }] = await store.quarantined.list({});
  const why = ["--why", hostile, "--by", hostile];
  for (const args of [
    ["pending", "list"],
    ["pending", "show", hostile],
    ["pending", "retry", hostile],
    ["explain", hostile],
    ["quarantine", "groups"],
    ["quarantine", "repair", id, "--id", `${hostile}3`, ...why],
    ["quarantine", "show", id],
    ["quarantine", "decisions"],
    ["explain", `${hostile}2`],
    ["explain", `${hostile}4`],
  ]) {
    const { stdout, stderr } = await inbox(...args);
    assert.notEqual(stdout + stderr, "");
    assert.doesNotMatch(stdout + stderr, /[\u0007\u001b\r\u202e]/, args.join(" "));
    assert.doesNotMatch(stdout + stderr, /^forged line/m, args.join(" "));
  }
});

import assert from "node:assert/strict";
import { userInfo } from "node:os";
import test from "node:test";
import { createQuarantine } from "../../src/quarantine/quarantine.ts";
import { ann, entryId, put } from "../quarantine/support.ts";
import { objects, testDesk } from "./desk.ts";

const why = ["--why", "the account is there now"];

test("groups tells thousands of failures in a line, and its filters narrow them", async (t) => {
  const { store, inbox } = await testDesk(t);
  for (const id of ["1", "2", "3"]) await put(store, id);
  await put(store, "4", { code: "payload-conflict", error: "another payload" });
  const table = await inbox("quarantine", "groups");
  assert.equal(table.code, 0, table.stderr);
  assert.match(table.stdout, /│ 3 +│ accounting +│ handler-rejected .*no account <n>/);
  const groups = objects((await inbox("quarantine", "groups", "--json")).stdout);
  assert.deepEqual(
    groups.map(({ code, count }) => [code, count]),
    [
      ["handler-rejected", 3],
      ["payload-conflict", 1],
    ],
  );
  const group = String(groups[0]!["group"]);
  const ids = async (...filter: string[]): Promise<unknown[]> =>
    objects((await inbox("quarantine", "list", "--json", ...filter)).stdout).map(
      ({ messageId }) => messageId,
    );
  assert.deepEqual(await ids("--group", group), ["3", "2", "1"]);
  assert.deepEqual(await ids("--message-id", "2", "--producer", "shop"), ["2"]);
  assert.deepEqual(await ids("--text", "ANOTHER"), ["4"]);
  assert.deepEqual(await ids("--until", "2000-01-01"), []);
  assert.deepEqual(await ids("--since", "2000-01-01T12:00Z", "--tenant", "t"), []);
  const wrong = await inbox("quarantine", "list", "--since", "yesterday");
  assert.deepEqual([wrong.code, wrong.stdout], [2, ""]);
});

test("a decision wants to be told on what and why, and whoever cannot be asked is told so", async (t) => {
  const { store, inbox } = await testDesk(t);
  await put(store, "m1");
  const id = await entryId(store, "m1");
  for (const [args, reason] of [
    [["retry", ...why], /Say which entries/],
    [["retry", id, "--all", ...why], /either ids, or a filter, or --all/],
    [["discard", "--all", "--code", "x", ...why], /either ids/],
    [["retry", id], /Give --why/],
    [["discard", id, "--why", " "], /Give --why/],
    [["retry", id, "--by", "", ...why], /Give --by/],
    [["discard", "--all", ...why], /1 open entry fits\. Confirm with --expected 1/],
    [["repair", id, ...why], /Say what to change/],
    [["purge", ...why], /decided-before/],
    [["purge", "--decided-before", "soon", ...why], /span of time/],
  ] as const) {
    const { code, stdout, stderr } = await inbox("quarantine", ...args);
    assert.deepEqual([code, stdout], [2, ""], args.join(" "));
    assert.match(stderr, reason);
  }
  assert.equal(await store.quarantined.count({}), 1);
});

test("retry of entries by their ids, by the user of the system; the second one is told who was first", async (t) => {
  const { store, inbox } = await testDesk(t);
  for (const id of ["m1", "m2"]) await put(store, id);
  const [one, two] = [await entryId(store, "m1"), await entryId(store, "m2")];
  const tried = await inbox("quarantine", "retry", one, "404", "--dry-run");
  assert.equal(tried.code, 1);
  assert.match(tried.stdout, /m1/);
  assert.match(tried.stderr, /no entry 404/);
  assert.equal(await store.quarantined.count({}), 2);

  const first = await inbox("quarantine", "retry", one, ...why);
  assert.equal(first.code, 0, first.stderr);
  assert.match(first.stderr, new RegExp(`Entry ${one} is given back`));
  const second = await inbox("quarantine", "discard", one, two, "404", "--json", "--by", "bob", ...why);
  assert.equal(second.code, 1);
  assert.deepEqual(
    objects(second.stdout).map(({ id, kind, error }) => [id, kind ?? (error as { code: string }).code]),
    [
      [one, "already-decided"],
      [two, "discard"],
      ["404", "entry-missing"],
    ],
  );
  assert.ok(second.stderr.includes(`retried: decided by "${userInfo().username}"`), second.stderr);
  const shown = await inbox("quarantine", "show", two);
  assert.match(shown.stdout, /decided by +bob/);
  assert.match(shown.stdout, /reason +the account is there now/);
  const table = await inbox("quarantine", "decisions");
  assert.match(table.stdout, /discard.*bob.*the account is there now/);
  assert.deepEqual(
    objects((await inbox("quarantine", "decisions", "--json")).stdout).map(({ kind, by }) => [kind, by]),
    [
      ["discard", "bob"],
      ["retry", userInfo().username],
    ],
  );
});

test("a decision by filter is previewed, confirmed by number, and refused when the number has changed", async (t) => {
  const { store, inbox } = await testDesk(t);
  for (const id of ["1", "2", "3"]) await put(store, id);
  const filter = ["--code", "handler-rejected"];
  const preview = await inbox("quarantine", "retry", ...filter, "--dry-run");
  assert.equal(preview.code, 0);
  assert.match(preview.stdout, /no account <n>/);
  assert.match(preview.stderr, /3 open entries fit: --expected 3/);
  const [json] = objects((await inbox("quarantine", "retry", ...filter, "--dry-run", "--json")).stdout);
  assert.equal(json!["entries"], 3);

  await put(store, "4");
  const changed = await inbox("quarantine", "retry", ...filter, "--expected", "3", ...why);
  assert.deepEqual([changed.code, changed.stdout], [1, ""]);
  assert.match(changed.stderr, /4 open entries fit, not 3/);
  assert.equal(await store.quarantined.count({}), 4);

  const done = await inbox(
    "quarantine",
    "retry",
    ...filter,
    "--expected",
    "4",
    "--json",
    "--by",
    "ann",
    ...why,
  );
  assert.equal(done.code, 0, done.stderr);
  const [decision] = objects(done.stdout);
  assert.deepEqual([decision!["matched"], decision!["decided"], decision!["by"]], [4, 4, "ann"]);
  assert.equal(await store.operator.countPending({ state: "ready" }), 4);
  const none = await inbox("quarantine", "discard", "--all", "--expected", "0", ...why);
  assert.equal(none.code, 0, none.stderr);
});

test("on a terminal the number and the reason are asked for, and another number decides nothing", async (t) => {
  const { store, answering } = await testDesk(t);
  for (const id of ["1", "2"]) await put(store, id);
  const wrong = await answering(["1"], "quarantine", "discard", "--all");
  assert.equal(wrong.code, 2);
  assert.match(wrong.stderr, /To discard them, type the number: .*Nothing is decided/s);
  const silent = await answering(["2", ""], "quarantine", "discard", "--all");
  assert.equal(silent.code, 2);
  assert.equal(await store.quarantined.count({}), 2);
  const right = await answering(["2", "a test of the shop"], "quarantine", "discard", "--all");
  assert.equal(right.code, 0, right.stderr);
  const rows = await store.quarantined.list({ status: "discarded" });
  assert.deepEqual(
    rows.map(({ decision }) => decision?.why),
    ["a test of the shop", "a test of the shop"],
  );
});

test("a decision whose command was ended on the way is named, and carried on", async (t) => {
  const { store, inbox } = await testDesk(t);
  for (const id of ["1", "2"]) await put(store, id);
  const { id } = await createQuarantine({ store }).discardMany({}, { ...ann, expected: 2 });
  const named = await inbox("quarantine", "groups");
  assert.match(
    named.stderr,
    new RegExp(`Decision ${id} .*ann.* 2 entries left. Run: inbox quarantine resume ${id}`),
  );
  assert.equal((await inbox("quarantine", "resume", "99")).code, 1);
  const resumed = await inbox("quarantine", "resume", "--json");
  assert.equal(resumed.code, 0, resumed.stderr);
  assert.deepEqual(
    objects(resumed.stdout).map((decision) => [decision["id"], decision["decided"]]),
    [[id, 2]],
  );
  const nothing = await inbox("quarantine", "resume");
  assert.deepEqual([nothing.code, nothing.stdout], [0, ""]);
});

test("what cannot be retried is left, and the exit code says so", async (t) => {
  const { store, pool, inbox } = await testDesk(t);
  await put(store, "m1");
  await put(store, "m1", { payload: "another", code: "payload-conflict" });
  await pool.query("update message set processed_at = now()");
  const many = await inbox("quarantine", "retry", "--all", "--expected", "2", ...why);
  assert.equal(many.code, 3, many.stderr);
  assert.match(many.stderr, /2 entries were left/);
  const id = await entryId(store, "m1");
  const single = await inbox("quarantine", "retry", id, ...why);
  assert.equal(single.code, 1);
  assert.match(single.stderr, /is applied since .*under an id of its own/);
});

test("purge removes only what was decided on, after a look", async (t) => {
  const { store, inbox } = await testDesk(t);
  for (const id of ["1", "2"]) await put(store, id);
  await createQuarantine({ store }).discard(await entryId(store, "1"), ann);
  const look = await inbox("quarantine", "purge", "--decided-before", "0s", "--dry-run", "--json");
  assert.deepEqual(objects(look.stdout), [{ entries: 1 }]);
  const young = await inbox("quarantine", "purge", "--decided-before", "90d", "--json", ...why);
  assert.deepEqual(objects(young.stdout), [{ removed: 0 }]);
  const purged = await inbox("quarantine", "purge", "--decided-before", "0s", "--by", "ann", ...why);
  assert.equal(purged.code, 0, purged.stderr);
  assert.match(purged.stderr, /1 entry removed/);
  assert.equal(await store.quarantined.count({ status: "all" }), 1);
});

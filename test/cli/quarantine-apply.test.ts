import assert from "node:assert/strict";
import test from "node:test";
import { entryId, put } from "../quarantine/support.ts";
import { testDesk } from "./desk.ts";

const why = ["--why", "it is not in the books"];
const late = { code: "late", error: "older than what the ledger remembers" };

test("a late entry is not retried but applied, by its id", async (t) => {
  const { store, inbox } = await testDesk(t);
  await put(store, "old", late);
  await put(store, "bad");
  const [old, bad] = [await entryId(store, "old"), await entryId(store, "bad")];
  const retried = await inbox("quarantine", "retry", old, ...why);
  assert.deepEqual([retried.code, retried.stdout], [1, ""]);
  assert.match(retried.stderr, new RegExp(`inbox quarantine apply ${old}`));
  const wrong = await inbox("quarantine", "apply", bad, ...why);
  assert.equal(wrong.code, 1);
  assert.match(wrong.stderr, /not late/);
  const applied = await inbox("quarantine", "apply", old, ...why);
  assert.equal(applied.code, 0, applied.stderr);
  assert.equal((await store.quarantined.show(old))?.decision?.kind, "apply");
  assert.equal((await store.quarantined.show(bad))?.status, "open");
});

test("of a filter apply takes what is late, and retry what is not", async (t) => {
  const { store, inbox } = await testDesk(t);
  for (const id of ["l1", "l2"]) await put(store, id, late);
  await put(store, "bad");
  const other = await inbox("quarantine", "apply", "--code", "handler-rejected", ...why);
  assert.deepEqual([other.code, other.stdout], [2, ""]);
  assert.match(other.stderr, /Only late entries/);
  const preview = await inbox("quarantine", "apply", "--all", "--dry-run");
  assert.match(preview.stderr, /2 open entries fit: --expected 2/);
  const retried = await inbox("quarantine", "retry", "--all", "--expected", "3", ...why);
  assert.equal(retried.code, 3, retried.stderr);
  assert.match(retried.stderr, /2 entries were left/);
  const applied = await inbox("quarantine", "apply", "--all", "--expected", "2", ...why);
  assert.equal(applied.code, 0, applied.stderr);
  assert.equal(await store.quarantined.count({ status: "open" }), 0);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { message, recordEffect, testInbox } from "./support.ts";

const json = { by: "json" } as const;

test("compares bytes by default, and canonical JSON where asked (HSH-01)", async (t) => {
  const { inboxWith } = await testInbox(t);
  const [one, other] = ['{"b":1,"a":2}', '{"a":2,"b":1}'];
  for (const [fingerprint, expected] of [
    [undefined, "conflict"],
    [json, "duplicate"],
  ] as const) {
    const inbox = inboxWith({ consumer: `by-${expected}`, fingerprint });
    await inbox.process(message("k1", { payload: one }), recordEffect);
    assert.equal((await inbox.process(message("k1", { payload: other }), recordEffect)).outcome, expected);
  }
});

test("sees a conflict that JSON.parse would round away (HSH-02)", async (t) => {
  const { inboxWith } = await testInbox(t);
  const inbox = inboxWith({ fingerprint: json });
  await inbox.process(message("m1", { payload: '{"id":9007199254740993}' }), recordEffect);
  const second = await inbox.process(message("m1", { payload: '{"id":9007199254740992}' }), recordEffect);
  assert.equal(second.outcome, "conflict");
});

test("tolerates a resend that differs only in the paths left out (HSH-05)", async (t) => {
  const { inboxWith } = await testInbox(t);
  const inbox = inboxWith({ fingerprint: { by: "json", except: ["/sentAt"] } });
  const payload = (sentAt: number, amount: number) => JSON.stringify({ sentAt, amount });
  await inbox.process(message("m1", { payload: payload(1, 5) }), recordEffect);
  assert.equal(
    (await inbox.process(message("m1", { payload: payload(2, 5) }), recordEffect)).outcome,
    "duplicate",
  );
  assert.equal(
    (await inbox.process(message("m1", { payload: payload(2, 6) }), recordEffect)).outcome,
    "conflict",
  );
});

test("reads no conflict out of a changed mode, and still sees a changed payload", async (t) => {
  const { inboxWith } = await testInbox(t);
  await inboxWith({}).process(message("m1", { payload: '{"a":1}' }), recordEffect);
  const json1 = inboxWith({ fingerprint: json });
  assert.equal(
    (await json1.process(message("m1", { payload: '{"a":1}' }), recordEffect)).outcome,
    "duplicate",
  );
  assert.equal(
    (await json1.process(message("m1", { payload: '{"a":2}' }), recordEffect)).outcome,
    "conflict",
  );
});

test("tells a tombstone from an empty body and from a missing one (null payloads are legal)", async (t) => {
  const { inbox, effects } = await testInbox(t);
  assert.equal((await inbox.process(message("m1", { payload: null }), recordEffect)).outcome, "applied");
  assert.equal((await inbox.process(message("m1", { payload: null }), recordEffect)).outcome, "duplicate");
  assert.equal((await inbox.process(message("m1", { payload: "" }), recordEffect)).outcome, "conflict");
  assert.deepEqual(await effects(), { m1: 1 });
});

test("keeps look-alike ids apart (IDN-15)", async (t) => {
  const { inbox, effects } = await testInbox(t);
  for (const id of ["\u00e9", "e\u0301", "E", "e", " e", "e "]) {
    assert.equal((await inbox.process(message(id), recordEffect)).outcome, "applied", JSON.stringify(id));
  }
  assert.equal(Object.keys(await effects()).length, 6);
});

test("cannot be made to merge two identities by concatenation (IDN-01)", async (t) => {
  const { inbox } = await testInbox(t);
  const names = [
    ["a|b", "c"],
    ["a", "b|c"],
    ["a|", "b|c"],
    ["1:a", "b"],
    ["1", ":ab"],
  ] as const;
  for (const [producer, id] of names) {
    assert.equal((await inbox.process(message(id, { producer }), recordEffect)).outcome, "applied");
  }
});

test("keeps a message whose row was fingerprinted in a way this release does not know, with its neighbours", async (t) => {
  const { inbox, pool } = await testInbox(t);
  await inbox.processBatch([message("m1"), message("m2")], recordEffect);
  await pool.query("update message set fingerprint_mode = 'later' where message_id = 'm1'");
  const again = await inbox.processBatch([message("m1"), message("m2"), message("m3")], recordEffect);
  assert.deepEqual(
    again.map(({ outcome }) => outcome),
    ["conflict", "duplicate", "applied"],
  );
});

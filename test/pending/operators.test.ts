import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { createPending } from "../../src/pending/pending.ts";
import type { PutOff } from "../../src/store/pending.ts";
import type { Store } from "../../src/store/store.ts";
import { consumer, storedMessage, testStore } from "../quarantine/support.ts";

const name = { consumer, handlerVersion: "3" };
const messageOf = (id: string) => ({ consumer, tenant: "", producer: "shop", id });

/** A message whose attempt failed, to run again in an hour. */
const putOff = (store: Store, id: string, more: Partial<PutOff> = {}) =>
  store.pending.putOff(name, {
    message: storedMessage(id, { key: id, headers: { authorization: "s3cret" } }),
    pending: undefined,
    ...{ code: "handler-failed", error: `no account ${id}`, counts: true, park: false },
    delayAfter: () => 3_600_000,
    ...more,
  });

test("lists what is pending in its order, by page and by filter", async (t) => {
  const { store } = await testStore(t);
  const pending = createPending({ store });
  await store.pending.accept(name, 100, [storedMessage("a", { type: "order" }), storedMessage("b")]);
  await putOff(store, "c");
  const ids = async (options: Parameters<typeof pending.list>[0]): Promise<string[]> =>
    (await pending.list(options)).map(({ messageId }) => messageId);
  assert.deepEqual(await ids({}), ["a", "b", "c"]);
  const [first] = await pending.list({ limit: 1 });
  assert.deepEqual(await ids({ after: first!.position }), ["b", "c"]);
  assert.deepEqual(await ids({ after: "no number" }), []);
  assert.deepEqual(await ids({ state: "scheduled" }), ["c"]);
  assert.deepEqual(await ids({ type: "order" }), ["a"]);
  assert.deepEqual(await ids({ key: "c", code: "handler-failed", consumer, producer: "shop" }), ["c"]);
  assert.deepEqual(await ids({ consumer: "another" }), []);
  assert.deepEqual(await ids({ messageId: "\0" }), []);
  assert.equal(await pending.count({ state: "ready" }), 2);
  const [row] = await pending.list({ state: "scheduled" });
  assert.deepEqual([row?.attempts, row?.error, row?.payloadBytes], [1, "no account c", 10]);
  assert.ok(row!.dueAt! > row!.receivedAt);
});

test("shows one message with what is to be hidden hidden", async (t) => {
  const { store } = await testStore(t);
  const pending = createPending({ store, redact: ["/id"] });
  await putOff(store, "c");
  const shown = await pending.show(messageOf("c"));
  assert.deepEqual(shown?.payload, { kind: "text", text: '{"id":"***"}', bytes: 10 });
  assert.deepEqual(shown?.headers, { authorization: "***" });
  assert.equal(await pending.show(messageOf("d")), undefined);
  assert.equal(await pending.show({ ...messageOf("c"), tenant: "t" }), undefined);
});

test("a scheduled message may be let run now, once; another one may not", async (t) => {
  const { store } = await testStore(t);
  const pending = createPending({ store });
  await store.pending.openLanes(consumer);
  const request = {
    ...{ workerId: randomUUID(), leaseMs: 60_000, maxLanes: 64, maxMessages: 100, maxBytes: 1e9, done: [] },
  };
  const taken = async (): Promise<string[]> =>
    (await store.pending.take(consumer, request)).messages.map(({ id }) => id);
  for (const id of ["a", "b", "c"]) await putOff(store, id);
  await store.pending.accept(name, 100, [storedMessage("ready")]);
  assert.deepEqual(await taken(), ["ready"]);
  assert.equal(await pending.retryNow(messageOf("b")), true);
  assert.equal(await pending.retryNow(messageOf("b")), false);
  assert.equal(await pending.retryNow(messageOf("ready")), false);
  assert.equal(await pending.retryNow(messageOf("nobody")), false);
  assert.deepEqual(await taken(), ["b"]);
  assert.equal(await pending.retryAllNow({ consumer: "another" }), 0);
  assert.equal(await pending.retryAllNow({ consumer }), 2);
  assert.deepEqual((await taken()).sort(), ["a", "c"]);
  // Nothing else is changed by it.
  assert.deepEqual(
    (await pending.list({ state: "scheduled" })).map(({ attempts }) => attempts),
    [1, 1, 1],
  );
});

test("a message that a worker has in hand is left alone, and not waited for", async (t) => {
  const { store, pool } = await testStore(t);
  const pending = createPending({ store });
  for (const id of ["a", "b"]) await putOff(store, id);
  const worker = await pool.connect();
  try {
    await worker.query("begin");
    await worker.query("select from pending where message_id = 'a' for update");
    assert.equal(await pending.retryNow(messageOf("a")), false);
    assert.equal(await pending.retryAllNow({}), 1);
    await worker.query("rollback");
  } finally {
    worker.release();
  }
  assert.equal(await pending.retryAllNow({}), 1);
});

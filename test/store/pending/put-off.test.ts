import assert from "node:assert/strict";
import { test } from "node:test";
import type { PendingMessage, StoredMessage } from "../../../src/store/pending.ts";
import { entryOf, failed, idsOf, keyed, leasesOf, name, stored, testStore } from "../support.ts";

const lockTimeoutMs = 5_000;

test("a message from a source is stored with its attempt and schedule, and its key parked, all or nothing", async (t) => {
  const { store, rows } = await testStore(t);
  const [a1] = keyed("a1");
  const answer = await store.pending.putOff(
    name,
    failed(a1!, { delayAfter: (attempts) => attempts * 1_000 }),
  );
  assert.deepEqual(answer, { kind: "stored", attempts: 1, delayMs: 1_000 });
  assert.deepEqual(
    await rows(
      `select state, attempts, deferrals, last_code, last_error, due_at > clock_timestamp() as later,
              due_at < clock_timestamp() + interval '1 s' as soon from pending`,
    ),
    [
      {
        ...{ state: "scheduled", attempts: 1, deferrals: 0, last_code: "handler-failed" },
        ...{ last_error: "no such account", later: true, soon: true },
      },
    ],
  );
  assert.deepEqual(await rows("select message_key, due_at < 'infinity' as timed from parked_key"), [
    { message_key: "a", timed: true },
  ]);
  assert.deepEqual(await rows("select processed_at from message"), [{ processed_at: null }]);
  assert.equal((await rows("select from attempt")).length, 1);
});

test("attempts count on from one worker to the next; what is nobody's fault counts as a deferral, and none in a row after", async (t) => {
  const { store, take, makeDue } = await testStore(t);
  let message: StoredMessage | PendingMessage = keyed("a1")[0]!;
  const seen: unknown[] = [];
  for (const counts of [true, false, false, true, false]) {
    const answer = await store.pending.putOff(name, failed(message, { counts }));
    await makeDue();
    const { messages } = await take({ done: "lease" in message ? [message.lease] : [] });
    const [taken] = messages;
    seen.push([answer.kind, "attempts" in answer && answer.attempts, taken?.attempts, taken?.deferrals]);
    message = taken!;
  }
  assert.deepEqual(seen, [
    ["stored", 1, 1, 0],
    ["stored", 1, 1, 1],
    ["stored", 1, 1, 2],
    ["stored", 2, 2, 0],
    ["stored", 2, 2, 1],
  ]);
});

test("with the budget used up the attempt is counted and nothing else written", async (t) => {
  const { store, take, rows } = await testStore(t);
  const exhausted = { delayAfter: () => undefined };
  const fresh = await store.pending.putOff(name, failed(stored("m1"), exhausted));
  assert.deepEqual(fresh, { kind: "exhausted", attempts: 1 });
  assert.deepEqual(
    await rows("select from pending union all select from message union all select from parked_key"),
    [],
  );
  await store.pending.accept(name, lockTimeoutMs, [stored("m2")]);
  const { messages } = await take();
  assert.deepEqual(await store.pending.putOff(name, failed(messages[0]!, exhausted)), {
    kind: "exhausted",
    attempts: 1,
  });
  assert.deepEqual(await rows("select state, attempts from pending"), [{ state: "ready", attempts: 0 }]);
  assert.equal(await store.quarantine(name, entryOf(messages[0]!)), "stored");
  assert.deepEqual(await rows("select from pending"), []);
});

test("a message that somebody applied, or stored, meanwhile is told as such", async (t) => {
  const { store, begin, rows, untilBlocked } = await testStore(t);
  const applying = await begin();
  await applying.claim([stored("m1")]);
  const putOff = store.pending.putOff(name, failed(stored("m1")));
  await untilBlocked();
  await applying.commit();
  assert.deepEqual(await putOff, { kind: "duplicate" });
  await store.pending.accept(name, lockTimeoutMs, [stored("m2")]);
  assert.deepEqual(await store.pending.putOff(name, failed(stored("m2"))), { kind: "known" });
  assert.deepEqual(await rows("select message_id, state from pending"), [
    { message_id: "m2", state: "ready" },
  ]);
});

test("the budget begins anew when a message is given back from quarantine, also for one that came inline", async (t) => {
  const { store, rows, take } = await testStore(t);
  const [a1] = keyed("a1");
  for (let i = 1; i <= 3; i++)
    await store.recordAttempt(name, { ...a1!, code: "handler-failed", error: "x" });
  assert.equal(await store.quarantine(name, entryOf(a1!, { attempts: 3 })), "stored");
  const [entry] = await store.quarantined.list({});
  assert.equal(
    typeof (await store.quarantined.decide("retry", entry!.id, { by: "ann", why: "fixed" })),
    "string",
  );
  const { messages } = await take();
  assert.deepEqual([messages[0]?.id, messages[0]?.attempts], ["a1", 0]);
  const elapsed: number[] = [];
  const answer = await store.pending.putOff(
    name,
    failed(messages[0]!, {
      delayAfter(attempts, elapsedMs) {
        elapsed.push(elapsedMs);
        return attempts * 1_000;
      },
    }),
  );
  assert.deepEqual(answer, { kind: "stored", attempts: 1, delayMs: 1_000 });
  const [age] = await rows<{ ms: number }>(
    "select extract(epoch from clock_timestamp() - decided_at)::float8 * 1000 as ms from quarantine",
  );
  assert.ok(elapsed[0]! <= age!.ms, "counted from the decision on");
  // Purging the decision would make the old attempts count again: it stays as long as its message is pending.
  assert.equal(await store.quarantined.countPurgeable(-1_000, undefined), 0);
  assert.equal((await rows("select from attempt")).length, 4, "the history is whole");
});

test("waits says whether anything goes on by itself, up to a place, however much others add behind it", async (t) => {
  const { store, take, handle, makeDue } = await testStore(t);
  const waits = (upTo?: string) => store.pending.waits(name.consumer, upTo);
  assert.equal(await waits(), false);
  await store.pending.accept(name, lockTimeoutMs, keyed("a1", "a2"));
  const place = await store.pending.lastPosition();
  await store.pending.accept(name, lockTimeoutMs, [stored("later")]);
  assert.deepEqual([await waits(place), await waits("0")], [true, false]);
  let { messages } = await take();
  const [a1] = messages.filter(({ id }) => id === "a1");
  await store.pending.putOff(name, failed(a1!));
  assert.equal(await waits(place), true, "scheduled");
  await take({ maxMessages: 0, done: leasesOf(messages) });
  await take({ maxMessages: 0 });
  await makeDue();
  ({ messages } = await take());
  const mine = messages.filter(({ key }) => key === "a");
  assert.deepEqual(idsOf(mine), ["a1"]);
  await handle(mine);
  assert.equal(await waits(place), true, "behind, or ready");
  ({ messages } = await take({ done: leasesOf(messages) }));
  const a2 = messages.filter(({ id }) => id === "a2");
  await store.quarantine(name, entryOf(a2[0]!));
  assert.deepEqual([await waits(place), await waits()], [false, true], "only a decision moves it on");
});

test("what waits behind a message in quarantine is not waited for", async (t) => {
  const { store, begin } = await testStore(t);
  const [a1, a2] = keyed("a1", "a2");
  await store.quarantine(name, entryOf(a1!));
  const tx = await begin();
  const { keysParked } = await tx.claim([a2!]);
  assert.equal(keysParked, true);
  assert.deepEqual(await tx.parkedKeys(["a", "b"]), new Set(["a"]));
  await tx.storeBehind([a2!]);
  await tx.commit();
  assert.equal(await store.pending.waits(name.consumer), false);
  await store.quarantined.decide("discard", (await store.quarantined.list({}))[0]!.id, {
    by: "ann",
    why: "test",
  });
  assert.equal(await store.pending.waits(name.consumer), true);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { PermanentError } from "../../src/errors.ts";
import { again, refused, sent } from "../../src/relay/answer.ts";
import type { Effect } from "../../src/relay/effect.ts";
import { createRelay } from "../../src/relay/relay.ts";
import { onTestEnd } from "../support/cleanup.ts";
import { testOutbox } from "../outbox/support.ts";
import { effect, gate, networkError, startRelay, until } from "./support.ts";

test("sends what is committed, keeps what the destination answered, and leaves nothing behind", async (t) => {
  const place = await testOutbox(t);
  const seen: Effect[] = [];
  await startRelay(t, place, {
    there: (given: Effect) => {
      seen.push(given);
      return { receipt: 7 };
    },
  });
  const time = new Date("2026-01-02T03:04:05.678Z");
  await place.commit((client) =>
    place.outbox.send(
      client,
      effect("m1", { key: "k", type: "t", time, tenant: "acme", headers: { a: "b" } }),
    ),
  );
  await until(place.attempts, (attempts) => attempts.length === 1);
  assert.deepEqual(await place.waiting(), []);
  const [one] = seen;
  assert.deepEqual(
    [
      one?.id,
      one?.producer,
      one?.tenant,
      one?.key,
      one?.type,
      one?.time,
      one?.headers,
      one?.json(),
      one?.attempt,
    ],
    ["m1", "orders", "acme", "k", "t", time, { a: "b" }, { id: "m1" }, 1],
  );
  const { rows } = await place.pool.query("select outcome, attempt, result, code from outbox_attempt");
  assert.deepEqual(rows, [{ outcome: "sent", attempt: 1, result: '{"receipt":7}', code: null }]);
  const lanes = await place.pool.query("select 1 from outbox_lane where leased_until is not null");
  assert.equal(lanes.rowCount, 0);
});

test("a transaction that commits after later ones is not passed over", async (t) => {
  const place = await testOutbox(t);
  const seen: string[] = [];
  const slow = await place.pool.connect();
  onTestEnd(t, () => slow.release());
  await slow.query("begin");
  await place.outbox.send(slow, effect("early"));
  await startRelay(t, place, { there: ({ id }: Effect) => void seen.push(id) });
  await place.commit((client) => place.outbox.send(client, effect("late")));
  await until(place.attempts, (attempts) => attempts.includes("late: sent"));
  await slow.query("commit");
  await until(place.attempts, (attempts) => attempts.includes("early: sent"));
  assert.deepEqual(seen, ["late", "early"]);
});

test("a key waits for its failed effect, and nothing else does", async (t) => {
  const place = await testOutbox(t);
  const seen: string[] = [];
  let works = false;
  await startRelay(t, place, {
    there: {
      retryDelayMs: 20,
      deliver: async ({ id }) => {
        seen.push(id);
        await Promise.resolve();
        if (id === "a1" && !works) throw new Error("not yet");
        return sent();
      },
    },
  });
  await place.commit((client) =>
    place.outbox.sendAll(client, [
      ...["a1", "a2", "a3"].map((id) => effect(id, { key: "a" })),
      ...["b1", "b2"].map((id) => effect(id, { key: "b" })),
      effect("free"),
    ]),
  );
  await until(place.attempts, (attempts) => attempts.filter((line) => line === "a1: failed").length >= 3);
  // Later ones wait too, those that were there and those that come.
  await place.commit((client) => place.outbox.send(client, effect("a4", { key: "a" })));
  await until(place.attempts, (attempts) => attempts.filter((line) => line === "a1: failed").length >= 5);
  assert.deepEqual(await place.waiting(), ["a1", "a2", "a3", "a4"]);
  assert.ok(["b1", "b2", "free"].every((id) => seen.includes(id)));
  works = true;
  await until(place.waiting, (waiting) => waiting.length === 0);
  assert.deepEqual(
    seen.filter((id, i) => id.startsWith("a") && seen.indexOf(id) === i),
    ["a1", "a2", "a3", "a4"],
  );
  assert.equal(seen.filter((id) => id === "a2").length, 1);
});

test("a long queue behind a key comes out in its order when the key is free", async (t) => {
  const place = await testOutbox(t);
  const seen: string[] = [];
  let works = false;
  await startRelay(t, place, {
    there: {
      retryDelayMs: 20,
      deliver: ({ id }) => {
        if (!works) return Promise.resolve(again("not yet"));
        seen.push(id);
        return Promise.resolve(sent());
      },
    },
  });
  const ids = Array.from({ length: 450 }, (_, i) => `m${i}`);
  await place.commit((client) => place.outbox.send(client, effect("m0", { key: "k" })));
  await until(place.attempts, (attempts) => attempts.length > 0);
  await place.commit((client) =>
    place.outbox.sendAll(
      client,
      ids.slice(1).map((id) => effect(id, { key: "k" })),
    ),
  );
  const behind = () =>
    place.pool
      .query<{ n: number }>("select count(*)::int as n from outbox where state = 'behind'")
      .then(({ rows }) => rows[0]!.n);
  await until(behind, (n) => n > 0);
  works = true;
  await until(place.waiting, (waiting) => waiting.length === 0);
  assert.deepEqual(seen, ids);
});

test("what a destination says is on the record: refused, failed, unclear, sent", async (t) => {
  const place = await testOutbox(t);
  const tried = new Map<string, number>();
  await startRelay(t, place, {
    there: {
      retryDelayMs: 10,
      deliver: ({ id }) => {
        const n = (tried.get(id) ?? 0) + 1;
        tried.set(id, n);
        if (id === "permanent") throw new PermanentError("no such address");
        if (id === "refused") return Promise.resolve(refused("gone", 410));
        if (n > 1) return Promise.resolve(sent("ok", 200));
        if (id === "reset") throw networkError("ECONNRESET");
        if (id === "nested") throw new Error("fetch failed", { cause: networkError("ECONNREFUSED") });
        throw new Error("busy");
      },
    },
  });
  await place.commit((client) =>
    place.outbox.sendAll(
      client,
      ["permanent", "refused", "reset", "nested", "failed"].map((id) => effect(id)),
    ),
  );
  await until(place.attempts, (attempts) => attempts.filter((line) => line.endsWith("sent")).length === 3);
  const { rows } = await place.pool.query<{ line: string }>(
    `select concat_ws(' ', effect_id, attempt, outcome, code, status, error, result) as line
       from outbox_attempt order by effect_id, attempt`,
  );
  assert.deepEqual(
    rows.map(({ line }) => line),
    [
      "failed 1 failed destination-failed busy",
      "failed 2 sent 200 ok",
      "nested 1 failed destination-failed fetch failed: It failed: ECONNREFUSED",
      "nested 2 sent 200 ok",
      "permanent 1 rejected destination-refused no such address",
      "refused 1 rejected destination-refused 410 gone",
      "reset 1 ambiguous destination-unclear It failed: ECONNRESET",
      "reset 2 sent 200 ok",
    ],
  );
  const counted = await place.pool.query("select effect_id, state, counted from outbox order by effect_id");
  assert.deepEqual(counted.rows, [
    { effect_id: "permanent", state: "quarantined", counted: 1 },
    { effect_id: "refused", state: "quarantined", counted: 1 },
  ]);
});

test("after a refusal the key waits for the decision, or goes on where that was asked for", async (t) => {
  const place = await testOutbox(t);
  const seen: string[] = [];
  const deliver = ({ id }: Effect) => {
    seen.push(id);
    return Promise.resolve(id === "1" ? refused("no") : sent());
  };
  await startRelay(t, place, { waits: { deliver }, goesOn: { deliver, afterRefusal: "go-on" } });
  for (const destination of ["waits", "goesOn"]) {
    await place.commit((client) =>
      place.outbox.sendAll(
        client,
        ["1", "2", "3"].map((id) => effect(id, { destination, key: "k" })),
      ),
    );
  }
  const states = () =>
    place.pool
      .query<{ line: string }>(
        "select concat_ws(' ', destination, effect_id, state) as line from outbox order by destination, position",
      )
      .then(({ rows }) => rows.map(({ line }) => line));
  await until(states, (lines) => lines.length === 4 && lines.every((line) => !line.endsWith("ready")));
  assert.deepEqual(await states(), [
    "goesOn 1 aside",
    "waits 1 quarantined",
    "waits 2 behind",
    "waits 3 behind",
  ]);
});

test("a delayed effect is not sent before, and one whose time is over not at all", async (t) => {
  const place = await testOutbox(t);
  await place.store.outbox.openLanes(["there"]);
  await place.commit(async (client) => {
    await place.outbox.send(client, effect("over", { lifetimeMs: 1, key: "k" }));
    await place.outbox.send(client, effect("in time", { lifetimeMs: 60_000, key: "k" }));
    await place.outbox.send(client, effect("soon", { delayMs: 300, key: "k" }));
    await place.outbox.send(client, effect("behind it", { key: "k" }));
    await place.outbox.send(client, effect("much later", { delayMs: 3_600_000 }));
  });
  await until(
    () => place.pool.query("select 1 from outbox where expires_at < clock_timestamp()"),
    ({ rowCount }) => rowCount === 1,
  );
  const seen: string[] = [];
  await startRelay(t, place, {
    there: async ({ id }: Effect) => {
      const { rows } = await place.pool.query<{ early: boolean }>(
        "select due_at > clock_timestamp() as early from outbox where effect_id = $1",
        [id],
      );
      seen.push(rows[0]!.early ? `${id}, early` : id);
    },
  });
  await until(place.attempts, (attempts) => attempts.length === 4);
  assert.deepEqual(seen, ["in time", "soon", "behind it"]);
  assert.ok((await place.attempts()).includes("over: expired"));
  assert.deepEqual(await place.waiting(), ["much later"]);
});

test("a destination that does not answer is paused, counts against no effect, and stops no other", async (t) => {
  const place = await testOutbox(t);
  let works = false;
  let asked = 0;
  const relay = await startRelay(t, place, {
    dead: {
      retryDelayMs: 1,
      maxAttempts: 2,
      pauseAfter: 3,
      concurrency: 1,
      deliver: () => {
        asked++;
        if (!works) throw new Error("It fails for everybody.");
        return Promise.resolve(sent());
      },
    },
    there: () => undefined,
  });
  const ids = Array.from({ length: 200 }, (_, i) => `m${i}`);
  await place.commit((client) =>
    place.outbox.sendAll(client, [
      ...ids.map((id) => effect(id, { destination: "dead" })),
      ...ids.map((id) => effect(id)),
    ]),
  );
  await until(place.attempts, (attempts) => attempts.filter((line) => line.endsWith("sent")).length === 200);
  await until(() => relay.health()["dead"]?.state === "paused");
  const states = await place.pool.query<{ state: string; n: number }>(
    "select state, count(*)::int as n from outbox group by state order by 2 desc",
  );
  assert.ok(states.rows[0]!.state === "ready" && states.rows[0]!.n > 150, JSON.stringify(states.rows));
  assert.ok(asked < 40, `asked ${asked} times`);
  works = true;
  await until(place.waiting, (waiting) => waiting.length === 0);
  assert.equal(relay.health()["dead"]?.state, "open");
});

test("a pause that a destination asks for is kept for all that goes there", async (t) => {
  const place = await testOutbox(t);
  const asked: number[] = [];
  await startRelay(t, place, {
    there: {
      concurrency: 1,
      retryDelayMs: 1,
      deliver: () => {
        asked.push(performance.now());
        return Promise.resolve(
          asked.length === 1
            ? again("slow down", { pauseMs: 700, fault: "destination", status: 429 })
            : sent(),
        );
      },
    },
  });
  await place.commit((client) =>
    place.outbox.sendAll(
      client,
      Array.from({ length: 20 }, (_, i) => effect(`m${i}`)),
    ),
  );
  await until(place.waiting, (waiting) => waiting.length === 0);
  assert.ok(asked[1]! - asked[0]! >= 690, `asked again after ${asked[1]! - asked[0]!} ms`);
  const { rows } = await place.pool.query("select status from outbox_attempt where outcome = 'failed'");
  assert.deepEqual(rows, [{ status: 429 }]);
});

test("one effect that fails while others are taken goes to quarantine, as often tried as allowed", async (t) => {
  const place = await testOutbox(t);
  let tries = 0;
  await startRelay(t, place, {
    there: {
      retryDelayMs: 1,
      maxAttempts: 4,
      deliver: ({ id }) => {
        if (id !== "poison") return Promise.resolve(sent());
        tries++;
        throw new Error(`bad ${tries}`);
      },
    },
  });
  await place.commit((client) => place.outbox.sendAll(client, [effect("poison"), effect("good")]));
  const entry = await until(
    () => place.pool.query("select state, last_code, last_error, attempts from outbox"),
    ({ rows }) => (rows[0] as { state?: string } | undefined)?.state === "quarantined" && rows.length === 1,
  );
  assert.deepEqual(entry.rows, [
    { state: "quarantined", last_code: "attempts-exhausted", last_error: "bad 4", attempts: 4 },
  ]);
  assert.equal(tries, 4);
});

test("a call that takes too long is unclear, and so is one that a stop cuts off", async (t) => {
  const place = await testOutbox(t);
  const aborted: string[] = [];
  const relay = createRelay({
    store: place.store,
    stopTimeoutMs: 100,
    destinations: {
      slow: {
        timeoutMs: 60,
        retryDelayMs: 3_600_000,
        maxRetryDelayMs: 3_600_000,
        deliver: ({ id }, { signal }) =>
          new Promise(() => signal.addEventListener("abort", () => aborted.push(id))),
      },
      hangs: { deliver: () => new Promise(() => undefined) },
    },
  });
  await relay.start();
  await place.commit(async (client) => {
    await place.outbox.send(client, effect("too slow", { destination: "slow" }));
    await place.outbox.send(client, effect("cut off", { destination: "hangs" }));
  });
  await until(place.attempts, (attempts) => attempts.includes("too slow: ambiguous"));
  await until(() => relay.health()["hangs"]?.inHand === 1);
  await relay.stop();
  await relay.stop();
  assert.deepEqual(aborted, ["too slow"]);
  assert.deepEqual([...(await place.attempts())].sort(), ["cut off: ambiguous", "too slow: ambiguous"]);
});

test("stop lets what is in flight come to its end and gives the rest back untouched", async (t) => {
  const place = await testOutbox(t);
  const { opened, open } = gate();
  const seen: string[] = [];
  const relay = createRelay({
    store: place.store,
    destinations: {
      there: {
        concurrency: 2,
        deliver: async ({ id }) => {
          seen.push(id);
          await opened;
          return sent();
        },
      },
    },
  });
  await relay.start();
  await place.commit((client) =>
    place.outbox.sendAll(
      client,
      Array.from({ length: 20 }, (_, i) => effect(`m${i}`)),
    ),
  );
  await until(() => seen.length === 2);
  const stopped = relay.stop();
  open();
  await stopped;
  assert.equal(seen.length, 2);
  assert.deepEqual([...(await place.attempts())].sort(), seen.map((id) => `${id}: sent`).sort());
  const left = await place.pool.query(
    `select count(*)::int as n, count(distinct state)::int as states, max(attempts) as attempts,
            (select count(*)::int from outbox_lane where leased_until is not null) as leased from outbox`,
  );
  assert.deepEqual(left.rows, [{ n: 18, states: 1, attempts: 0, leased: 0 }]);
});

test("a relay that lost its lease sends nothing more and writes nothing over the other's word", async (t) => {
  const place = await testOutbox(t);
  const { opened, open } = gate();
  const first: string[] = [];
  const second: string[] = [];
  // The first one's leases are not prolonged: as if its process had been stopped.
  const frozen = {
    ...place.store,
    outbox: { ...place.store.outbox, renew: () => Promise.reject(new Error("frozen")) },
  };
  await startRelay(
    t,
    { store: frozen },
    {
      there: async ({ id }: Effect) => {
        first.push(id);
        await opened;
        // What is asked for later, either of them may send.
        if (id === "1") throw new Error("It comes too late.");
      },
    },
    { leaseMs: 200 },
  );
  await place.commit((client) =>
    place.outbox.sendAll(
      client,
      ["1", "2", "3"].map((id) => effect(id, { key: "k" })),
    ),
  );
  await until(() => first.length === 1);
  await startRelay(t, place, { there: ({ id }: Effect) => void second.push(id) });
  await until(place.waiting, (waiting) => waiting.length === 0);
  assert.deepEqual(second, ["1", "2", "3"]);
  open();
  await place.commit((client) => place.outbox.send(client, effect("4", { key: "k" })));
  await until(place.waiting, (waiting) => waiting.length === 0);
  assert.deepEqual(first.slice(0, 1), ["1"]);
  assert.ok(!first.includes("2") && !first.includes("3"));
  assert.ok((await place.attempts()).every((line) => line.endsWith("sent")));
});

test("options that break their rule are refused with field, rule and value", async (t) => {
  const { store } = await testOutbox(t);
  const there = () => undefined;
  const wrong: [unknown, RegExp][] = [
    [{ store: {}, destinations: { there } }, /store must be/],
    [{ store, destinations: {} }, /at least one/],
    [{ store }, /at least one/],
    [{ store, destinations: { there: {} } }, /"there" must be a function/],
    [{ store, destinations: { there: { deliver: there, concurrency: 0 } } }, /concurrency.*got 0/],
    [{ store, destinations: { there: { deliver: there, afterRefusal: "stop" } } }, /afterRefusal.*"stop"/],
    [{ store, destinations: { there }, leaseMs: 5 }, /leaseMs.*got 5/],
    [{ store, destinations: { there }, pollIntervalMs: 0.5 }, /pollIntervalMs.*got 0.5/],
  ];
  for (const [options, says] of wrong) {
    assert.throws(() => createRelay(options as never), { code: "invalid-option", message: says });
  }
});

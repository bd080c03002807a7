import assert from "node:assert/strict";
import test from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { answersOf, type SqsApi } from "../../../src/sources/sqs/client.ts";
import type { Held } from "../../../src/sources/sqs/held.ts";
import { createReceiver } from "../../../src/sources/sqs/receiver.ts";
import { errorName } from "../../../src/sources/sqs/sdk-error.ts";
import { createVisibility, longestHoldMs, retrySeconds } from "../../../src/sources/sqs/visibility.ts";

const hour = 3_600_000;

test("each entry of a batch has its own answer; one that is not named has failed", () => {
  assert.deepEqual(
    answersOf(4, {
      Successful: [{ Id: "0" }],
      Failed: [
        { Id: "1", Code: "ReceiptHandleIsInvalid", SenderFault: true },
        { Id: "3", Code: "InternalError", SenderFault: false },
      ],
    }),
    [
      undefined,
      { code: "ReceiptHandleIsInvalid", final: true },
      { code: "not answered", final: false },
      { code: "InternalError", final: false },
    ],
  );
  assert.deepEqual(answersOf(1, { Failed: [{ Id: "0", Code: "RequestThrottled", SenderFault: true }] }), [
    { code: "RequestThrottled", final: false },
  ]);
});

test("a retry is in whole seconds, not sooner than asked, and never beyond the 12 hours, which SQS refuses", () => {
  const cases: readonly [number, number, number][] = [
    [0, 0, 0],
    [1, 0, 1],
    [1_000, 0, 1],
    [1_001, 0, 2],
    [13 * hour, 0, 12 * 3_600 - 60],
    [2 * hour, 11 * hour, 3_600 - 60],
    [60_000, 12 * hour, 0],
  ];
  for (const [afterMs, heldMs, seconds] of cases) {
    assert.equal(retrySeconds(afterMs, 5, 5 + heldMs), seconds, `${afterMs} after ${heldMs}`);
  }
});

test("a message in hand is extended until its 12 hours are over, then given back once, before SQS takes it", async () => {
  let now = 0;
  const held: Held = {
    ...{ messageId: "m", group: undefined, bytes: 1, deliveries: [], handle: "h" },
    ...{ receivedAt: 0, visibleAt: 30_000, open: 1, ending: { kind: "ack" }, lost: false },
  };
  const given: number[] = [];
  const api: Pick<SqsApi, "changeVisibility"> = {
    async changeVisibility(entries) {
      for (const { seconds } of entries) {
        assert.ok(now < held.visibleAt, "extended in time");
        assert.ok(now + seconds * 1_000 <= longestHoldMs, "SQS refuses more than 12 hours in all");
      }
      return entries.map(() => undefined);
    },
  };
  const visibility = createVisibility({
    api: api as SqsApi,
    held: () => [held],
    timeoutMs: 30_000,
    now: () => now,
    warn: (text) => assert.fail(text),
    giveBack(message) {
      given.push(now);
      message.lost = true;
    },
  });
  for (; now < longestHoldMs + hour; now += 10_000) await visibility.extend();
  assert.equal(given.length, 1);
  assert.ok(given[0]! < longestHoldMs && given[0]! > longestHoldMs - 120_000);
});

test("a handle that SQS does not know any more is not extended again, until the message is received anew", async () => {
  let now = 0;
  let calls = 0;
  const held: Held = {
    ...{ messageId: "m", group: undefined, bytes: 1, deliveries: [], handle: "h" },
    ...{ receivedAt: 0, visibleAt: 1_000, open: 1, ending: { kind: "ack" }, lost: false },
  };
  const api = {
    changeVisibility: async () => {
      calls++;
      return [{ code: "ReceiptHandleIsInvalid", final: true }];
    },
  };
  const visibility = createVisibility({
    ...{ api: api as unknown as SqsApi, held: () => [held], timeoutMs: 1_000, now: () => now },
    ...{ warn: () => undefined, giveBack: () => assert.fail("given back") },
  });
  for (; now < 5_000; now += 300) await visibility.extend();
  assert.equal(calls, 1);
  Object.assign(held, { handle: "h2", receivedAt: now, visibleAt: now + 1_000, lost: false });
  now += 500;
  await visibility.extend();
  assert.equal(calls, 2);
});

test("a quiet queue has one request, a full one as many as allowed, and failures slow it down", async () => {
  let open = 0;
  let most = 0;
  let full = true;
  const failures: number[] = [];
  let failing = false;
  let answered = 0;
  let changed: () => void = () => undefined;
  const until = async (condition: () => boolean): Promise<void> => {
    while (!condition()) await new Promise<void>((resolve) => (changed = resolve));
  };
  const receiver = createReceiver({
    async receive(count, signal) {
      open++;
      most = Math.max(most, open);
      try {
        await new Promise((resolve) => setImmediate(resolve));
        if (failing) throw Object.assign(new Error("away"), { code: "ECONNREFUSED" });
        if (!full) {
          await sleep(20_000, undefined, { signal });
        }
        return Array.from({ length: count }, () => ({}));
      } finally {
        open--;
        answered++;
        changed();
      }
    },
    take: async () => undefined,
    room: () => 1_000,
    receivers: 5,
    failed: (name, times) => {
      assert.equal(name, "ECONNREFUSED");
      failures.push(times);
      changed();
    },
    now: () => 0,
    random: () => 0,
  });
  receiver.fill();
  await until(() => answered > 50);
  assert.equal(most, 5);
  failing = true;
  await until(() => failures.length >= 6);
  assert.ok(failures.at(-1)! >= 2, "counted in a row");
  failing = false;
  full = false;
  // It goes on by itself, with one request.
  while (open === 0) await sleep(10);
  assert.equal(open, 1);
  const started = performance.now();
  await receiver.stop();
  assert.ok(performance.now() - started < 15_000, "waiting requests of 20 s are ended");
  assert.equal(open, 0);
});

test("an error is told by its name or code, whatever it holds", () => {
  assert.equal(
    errorName(Object.assign(new Error("secret"), { name: "QueueDoesNotExist" })),
    "QueueDoesNotExist",
  );
  assert.equal(errorName(Object.assign(new Error("secret"), { code: "ECONNREFUSED" })), "ECONNREFUSED");
  assert.equal(errorName(new Error("secret", { cause: { code: "ECONNRESET" } })), "ECONNRESET");
  assert.equal(
    errorName(Object.assign(new Error("x"), { name: "Evil\nname: secret here".repeat(20) })).length,
    80,
  );
  assert.doesNotMatch(errorName(Object.assign(new Error("x"), { name: "a\nb c" })), /\s/);
  for (const value of [undefined, null, "secret", 1, {}]) assert.equal(errorName(value), "Error");
});

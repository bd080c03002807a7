import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { checkWindow, windowFaults } from "../../src/retention/check-window.ts";
import { parseDuration, showDuration } from "../../src/retention/duration.ts";
import type { BrokerFacts, DeclaredFacts, RetentionFacts } from "../../src/retention/facts.ts";
import { retentionPlan } from "../../src/retention/plan.ts";

const d = (text: string): number => {
  const ms = parseDuration(text);
  assert.ok(ms !== undefined, text);
  return ms;
};
const queue = (retention: string, more: Partial<BrokerFacts> = {}): BrokerFacts => ({
  ...{ name: "q", kind: "queue", retentionMs: d(retention) },
  ...more,
});
const log = (retention: string): BrokerFacts => ({ name: "l", kind: "log", retentionMs: d(retention) });

const plan = (brokers: readonly BrokerFacts[], declared: DeclaredFacts = {}, marginMs = 0) =>
  retentionPlan({ brokers, declared, marginMs });

for (const [what, brokers, declared, decides, window] of [
  [
    "a queue: as long as an outage lets a lost acknowledgement wait",
    [queue("14d", { redeliverAfterMs: d("30s") })],
    { longestOutageMs: d("2d") },
    "redelivery",
    "2d30s",
  ],
  [
    "a queue that keeps messages shorter than the outage",
    [queue("1d")],
    { longestOutageMs: d("2d") },
    "redelivery",
    "1d",
  ],
  ["a queue, and nobody says how long an outage is", [queue("4d")], {}, "redelivery", "4d"],
  ["a log: all of it, for it may be set back", [log("7d")], { longestOutageMs: d("2d") }, "rewind", "7d"],
  [
    "a log that will not be set back so far",
    [log("90d")],
    { longestOutageMs: d("2d"), maxRewindMs: d("10d") },
    "rewind",
    "10d",
  ],
  [
    "the longer of two brokers",
    [log("7d"), { ...log("9d"), name: "m" }],
    { longestOutageMs: d("1h") },
    "rewind",
    "9d",
  ],
  [
    "dead letters, whose clock SQS starts with the first queue",
    [queue("4d", { deadLetter: { name: "dlq", retentionMs: d("14d"), startsAnew: false } })],
    { longestOutageMs: d("1d") },
    "dead-letter redrive",
    "15d",
  ],
  [
    "dead letters, whose clock starts anew",
    [queue("4d", { deadLetter: { name: "dlq", retentionMs: d("14d"), startsAnew: true } })],
    { longestOutageMs: d("1d") },
    "dead-letter redrive",
    "16d",
  ],
  [
    "dead letters that are redriven within a week by rule",
    [queue("4d", { deadLetter: { name: "dlq", retentionMs: d("14d"), startsAnew: true } })],
    { longestOutageMs: d("1d"), maxRedriveMs: d("7d") },
    "dead-letter redrive",
    "9d",
  ],
  [
    "a partner, whose last copy waits through an outage",
    [queue("4d")],
    { longestOutageMs: d("2d"), partnerRetryMs: d("30d") },
    "partner retry",
    "32d",
  ],
  [
    "a producer's retries",
    [queue("1h")],
    { longestOutageMs: d("30m"), producerRetryMs: d("1d") },
    "producer retry",
    "1d30m",
  ],
  [
    "an outbox that is sent again",
    [queue("1h")],
    { longestOutageMs: 0, outboxReplayMs: d("3d") },
    "outbox replay",
    "3d",
  ],
  [
    "a restore of the consumer",
    [log("7d")],
    { longestOutageMs: d("4h"), restoreMs: d("30d") },
    "restore",
    "30d4h",
  ],
  [
    "a restore of the producer",
    [log("7d")],
    { longestOutageMs: d("4h"), producerRestoreMs: d("8d") },
    "producer restore",
    "8d4h",
  ],
  [
    "a planned replay",
    [log("7d")],
    { longestOutageMs: 0, plannedReplayMs: d("52w") },
    "planned replay",
    "364d",
  ],
  ["requests without a broker", [], { requestToleranceMs: d("5m") }, "request replay", "5m"],
] as const satisfies readonly (readonly [string, readonly BrokerFacts[], DeclaredFacts, string, string])[]) {
  test(`the window of ${what}: ${window}`, () => {
    const { decides: found, windowMs } = plan(brokers, declared);
    assert.deepEqual([found?.name, windowMs], [decides, d(window)]);
  });
}

test("a log or a dead-letter queue without end needs a window without end, unless a rule limits it", () => {
  const endless: BrokerFacts = { name: "compacted", kind: "log", retentionMs: Number.POSITIVE_INFINITY };
  const { decides, windowMs } = plan([endless], { longestOutageMs: d("1d") });
  assert.deepEqual([decides?.name, windowMs], ["rewind", Number.POSITIVE_INFINITY]);
  const limited = plan([endless], { longestOutageMs: d("1d"), maxRewindMs: d("30d") });
  assert.equal(limited.windowMs, d("30d"));
  assert.match(limited.warnings.join(), /can send what is for ever old.*by your rule/);
});

test("what nobody declared is listed, and a queue without end asks for the longest outage", () => {
  const { decides, undeclared, windowMs } = retentionPlan({
    brokers: [{ name: "rabbitmq:q", kind: "queue", retentionMs: Number.POSITIVE_INFINITY }],
  });
  assert.equal(decides, undefined);
  assert.equal(windowMs, d("1d"), "the margin alone");
  assert.equal(undeclared.length, 8);
  assert.match(
    undeclared.find(({ name }) => name === "redelivery")!.how,
    /how long may the consumer be down/,
  );
});

test("warns of what would be lost, not only of what would be doubled", () => {
  const { warnings } = plan([log("3d"), queue("1d")], { longestOutageMs: d("2d"), restoreMs: d("7d") });
  assert.equal(warnings.filter((text) => text.includes("LOST")).length, 3);
});

test("the cost is the rate times the window times what a row takes", () => {
  const { cost } = retentionPlan({
    ...{ brokers: [log("9d")], marginMs: d("1d") },
    measured: { bytesPerRow: 200, rowsPerDay: 1_000_000 },
  });
  assert.deepEqual(cost, { rows: 10_000_000, bytes: 2_000_000_000 });
});

for (const [field, facts] of [
  ["declared.partnerRetryMs", { brokers: [], declared: { partnerRetryMs: -1 } }],
  ["declared.restoreMs", { brokers: [], declared: { restoreMs: Number.NaN } }],
  ["declared.restoreMs", { brokers: [], declared: { restoreMs: Number.POSITIVE_INFINITY } }],
  ["q.retentionMs", { brokers: [{ name: "q", kind: "queue", retentionMs: Number.NaN }] }],
  [
    "q.deadLetter.retentionMs",
    { brokers: [{ ...queue("1d"), deadLetter: { name: "x", retentionMs: -1, startsAnew: true } }] },
  ],
  ["marginMs", { brokers: [], marginMs: Number.POSITIVE_INFINITY }],
  ["measured.bytesPerRow", { brokers: [], measured: { bytesPerRow: Number.NaN, rowsPerDay: 1 } }],
] as const satisfies readonly (readonly [string, RetentionFacts])[]) {
  test(`a plan from no duration is refused: ${field} ${JSON.stringify(facts)}`, () => {
    assert.throws(() => retentionPlan(facts), {
      code: "invalid-option",
      message: new RegExp(`^${field.replaceAll(".", "\\.")} `),
    });
  });
}

const duration = fc.integer({ min: 0, max: d("400d") });
const someDeclared = fc.record<DeclaredFacts>(
  {
    longestOutageMs: duration,
    producerRetryMs: duration,
    outboxReplayMs: duration,
    partnerRetryMs: duration,
    restoreMs: duration,
    producerRestoreMs: duration,
    plannedReplayMs: duration,
    requestToleranceMs: duration,
  },
  { requiredKeys: ["longestOutageMs"] },
);
const someBroker = fc.record<BrokerFacts>({
  name: fc.constant("b"),
  kind: fc.constantFrom("queue", "log"),
  retentionMs: fc.oneof(duration, fc.constant(Number.POSITIVE_INFINITY)),
  redeliverAfterMs: duration,
  deadLetter: fc.option(
    fc.record({ name: fc.constant("dlq"), retentionMs: duration, startsAnew: fc.boolean() }),
    { nil: undefined },
  ),
});

test("a plan's own window has no fault, one a millisecond shorter than the longest reach has", () => {
  fc.assert(
    fc.property(fc.array(someBroker, { maxLength: 3 }), someDeclared, (brokers, declared) => {
      const made = plan(brokers, declared);
      assert.deepEqual(windowFaults(made, made.windowMs), []);
      const reach = made.decides?.reachMs ?? 0;
      if (reach > 0 && Number.isFinite(reach)) assert.ok(windowFaults(made, reach - 1).length > 0);
    }),
  );
});

test("nothing that goes wrong for longer makes the window shorter", () => {
  fc.assert(
    fc.property(
      fc.array(someBroker, { maxLength: 3 }),
      someDeclared,
      fc.constantFrom<keyof DeclaredFacts>(
        "longestOutageMs",
        "producerRetryMs",
        "partnerRetryMs",
        "restoreMs",
        "plannedReplayMs",
      ),
      duration,
      (brokers, declared, field, more) => {
        const longer = { ...declared, [field]: (declared[field] ?? 0) + more };
        assert.ok(plan(brokers, longer).windowMs >= plan(brokers, declared).windowMs);
      },
    ),
  );
});

test("the check at a source's start warns of a window that is too short, refuses it with strict, and is silent else", () => {
  const made = plan([{ ...log("7d"), name: "kafka:payments" }], { longestOutageMs: d("1d") });
  const said: string[] = [];
  const warn = (text: string): void => void said.push(text);
  checkWindow(made, { windowMs: d("7d"), warn });
  checkWindow(made, { windowMs: Number.POSITIVE_INFINITY, strict: true, warn });
  assert.deepEqual(said, []);
  checkWindow(made, { windowMs: d("3d"), warn });
  assert.match(said.join(), /kept for 3d.*rewind of kafka:payments reaches back 7d.*Keep identities for 7d/);
  assert.throws(() => checkWindow(made, { windowMs: d("3d"), strict: true, warn }), {
    code: "window-too-short",
  });
  assert.equal(said.length, 1);
});

test("durations are read as people write them, and written so that they are not too short", () => {
  for (const text of ["0s", "90s", "36h", "7d", "1d12h", "2w", "100ms", "5m30s"])
    assert.notEqual(parseDuration(text), undefined);
  for (const text of ["", "5", "d", "-1d", "1.5d", "1y", "1d ", " 1d", "99999999d", "9".repeat(400) + "d"]) {
    assert.equal(parseDuration(text), undefined, text);
  }
  assert.deepEqual([0, 1, 90_000, d("1d12h"), d("8d"), Number.POSITIVE_INFINITY].map(showDuration), [
    "0s",
    "1ms",
    "1m30s",
    "1d12h",
    "8d",
    "for ever",
  ]);
});

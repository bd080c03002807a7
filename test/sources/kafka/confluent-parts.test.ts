import assert from "node:assert/strict";
import test from "node:test";
import { InboxError } from "../../../src/errors.ts";
import { createConfluentPauses } from "../../../src/sources/kafka/confluent-pauses.ts";
import type { ClientEvents } from "../../../src/sources/kafka/client.ts";
import type { ConfluentConsumer } from "../../../src/sources/kafka/confluent-shapes.ts";
import { createTurns } from "../../../src/sources/kafka/confluent-turns.ts";
import { confluent, kafka, type ConfluentModule } from "../../../src/sources/kafka/kafka.ts";
import { testIntake } from "../../support/intake.ts";

// Parts of the adapter for confluent's client that need no broker.

test("an assignment changes after the batch that is under way was taken, at once where none is", async () => {
  const turns = createTurns();
  const seen: string[] = [];
  let arrive = (_batch: string): void => undefined;
  const polling = turns.poll(
    () => new Promise<string>((resolve) => (arrive = resolve)),
    (batch) => seen.push(batch),
  );
  const changed = turns.between(() => void seen.push("assign"));
  await Promise.resolve();
  assert.equal(seen.length, 0);
  arrive("batch");
  await Promise.all([polling, changed]);
  assert.deepEqual(seen, ["batch", "assign"]);
  void turns.between(() => void seen.push("at once"));
  assert.equal(seen.at(-1), "at once");
  await assert.rejects(
    turns.between(() => {
      throw new Error("refused");
    }),
    /refused/,
  );
});

test("a failed poll lets the change through too", async () => {
  const turns = createTurns();
  let fail = (_error: Error): void => undefined;
  const polling = turns.poll(
    () => new Promise<string>((_, reject) => (fail = reject)),
    () => undefined,
  );
  let changed = false;
  const change = turns.between(() => void (changed = true));
  fail(new Error("no broker"));
  await assert.rejects(polling, /no broker/);
  await change;
  assert.equal(changed, true);
});

/** librdkafka as far as pauses go: it keeps them when a partition is taken away. */
function fakeConsumer() {
  const paused = new Set<number>();
  let assigned: number[] = [];
  const numbers = (list: readonly { partition: number }[]): number[] =>
    list.map(({ partition }) => partition);
  const consumer = {
    assignments: () => assigned.map((partition) => ({ topic: "t", partition })),
    pause: (list: readonly { partition: number }[]) => numbers(list).forEach((n) => paused.add(n)),
    resume: (list: readonly { partition: number }[]) => numbers(list).forEach((n) => paused.delete(n)),
  } as unknown as ConfluentConsumer;
  const pauses = createConfluentPauses(
    () => consumer,
    (text) => assert.fail(text),
  );
  const parts = (...list: number[]) => list.map((partition) => ({ topic: "t", partition }));
  return {
    pauses,
    parts,
    reads: (): number[] => assigned.filter((n) => !paused.has(n)),
    assign(...list: number[]) {
      assigned = [...assigned, ...list];
      pauses.assigned(parts(...list));
    },
    unassign(...list: number[]) {
      pauses.unassigning(parts(...list));
      assigned = assigned.filter((n) => !list.includes(n));
    },
  };
}

test("a partition that was taken away while all rested is read when it comes back", () => {
  const { pauses, assign, unassign, reads } = fakeConsumer();
  assign(0, 1);
  pauses.hold();
  assert.deepEqual(reads(), []);
  unassign(1);
  pauses.release();
  pauses.follow();
  assign(1);
  assert.deepEqual(reads(), [0, 1]);
});

test("a partition that rests by itself stays so when the others go on, and not in its next assignment", () => {
  const { pauses, parts, assign, unassign, reads } = fakeConsumer();
  assign(0, 1);
  pauses.rest(parts(1)[0]!, true);
  pauses.hold();
  pauses.release();
  pauses.follow();
  assert.deepEqual(reads(), [0]);
  unassign(1);
  assign(1);
  assert.deepEqual(reads(), [0, 1]);
});

test("what is assigned while all rest does not run", () => {
  const { pauses, assign, reads } = fakeConsumer();
  pauses.hold();
  assign(0);
  assert.deepEqual(reads(), []);
});

test("after a rest those go first that had no turn, until each had one", () => {
  const { pauses, parts, assign, reads } = fakeConsumer();
  assign(0, 1, 2);
  pauses.gave(parts(0)[0]!);
  pauses.hold();
  pauses.release();
  assert.deepEqual(reads(), [1, 2]);
  pauses.gave(parts(1)[0]!);
  pauses.hold();
  pauses.release();
  assert.deepEqual(reads(), [2]);
  pauses.gave(parts(2)[0]!);
  pauses.hold();
  pauses.release();
  assert.deepEqual(reads(), [0, 1, 2]);
});

test("wrong options are refused by name", () => {
  const module: ConfluentModule = { KafkaConsumer: class {} };
  const refused = (make: () => unknown, pattern: RegExp): void =>
    assert.throws(make, (error) => {
      assert.ok(error instanceof InboxError && error.code === "invalid-option", String(error));
      assert.match(error.message, pattern);
      return true;
    });
  refused(() => confluent({} as ConfluentModule, {}), /module must be what @confluentinc/);
  refused(() => confluent(module, undefined as never), /config must be an object/);
  for (const name of ["group.id", "enable.auto.commit", "rebalance_cb", "offset_commit_cb"]) {
    refused(() => confluent(module, { [name]: "x" }), new RegExp(name));
  }
  const client = confluent(module, { "max.poll.interval.ms": 10_000 });
  const right = { client, topics: ["t"], groupId: "g", identity: "cloudevents" } as const;
  assert.equal(kafka(right).name, "kafka:t");
  refused(() => kafka({ ...right, client: {} as never }), /client/);
  refused(() => kafka({ ...right, topics: [] }), /topics/);
  refused(() => kafka({ ...right, topics: ["a", "a"] }), /once/);
  refused(() => kafka({ ...right, topics: ["not a topic"] }), /topics/);
  refused(() => kafka({ ...right, groupId: "" }), /groupId/);
  refused(() => kafka({ ...right, order: "exact" as never }), /order/);
  refused(() => kafka({ ...right, revokeTimeoutMs: 10_000 }), /revokeTimeoutMs/);
  refused(() => kafka({ ...right, commitIntervalMs: 0 }), /commitIntervalMs/);
});

test("its client is not ended while a commit is unanswered, as that would block a thread for as long; then it is", async () => {
  type Done = (error: null, result: unknown) => void;
  interface Config {
    readonly offset_commit_cb: (error: undefined, partitions: readonly object[]) => void;
  }
  const seen: string[] = [];
  let config: Config | undefined;
  let ended = (): void => undefined;
  const disconnected = new Promise<void>((resolve) => (ended = resolve));
  class Consumer {
    constructor(given: Config) {
      config = given;
    }
    on(): void {}
    setDefaultConsumeTimeout(): void {}
    setDefaultIsTimeoutOnlyForFirstMessage(): void {}
    subscribe(): void {}
    assignments = (): readonly object[] => [];
    connect = (_: object, done: Done): void => done(null, { topics: [{ name: "t" }] });
    consume = (_: number, done: Done): void => void setImmediate(() => done(null, []));
    commit = (list: readonly object[]): void => void seen.push(JSON.stringify(list));
    unsubscribe = (): void => void seen.push("unsubscribe");
    disconnect(done: Done): void {
      seen.push("disconnect");
      done(null, undefined);
      ended();
    }
  }
  const warnings: string[] = [];
  const facts = testIntake({ deliver: () => Promise.resolve(), end: () => undefined }).facts;
  const events: ClientEvents = {
    ...{ assigned: (list) => Promise.resolve(list), revoked: () => Promise.resolve() },
    ...{ records: () => Promise.resolve(), lost: () => undefined, readTo: () => undefined },
    ...{ alive: () => undefined, failed: (error) => assert.fail(error) },
    warn: (text) => void warnings.push(text),
  };
  const client = confluent({ KafkaConsumer: Consumer }, {});
  const session = await client.open({ topics: ["t"], groupId: "g", facts, revokeTimeoutMs: 1_000 }, events);
  const position = { topic: "t", partition: 0, offset: 5 };
  const commit = session.commit([{ ...position, offset: 5n }]);
  await session.close();
  assert.deepEqual(seen, [JSON.stringify([position]), "unsubscribe"]);
  assert.match(warnings.join(), /cannot end before/);
  config!.offset_commit_cb(undefined, [position]);
  await Promise.all([commit, disconnected]);
  assert.equal(seen.at(-1), "disconnect");
});

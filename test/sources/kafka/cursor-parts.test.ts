import assert from "node:assert/strict";
import test from "node:test";
import type { Intake, TakenCursor } from "../../../src/sources/source.ts";
import type { Assignment, KafkaSession, Watermarks } from "../../../src/sources/kafka/client.ts";
import { cursor, topicIdText } from "../../../src/sources/kafka/cursor.ts";
import { createCursorPartitions } from "../../../src/sources/kafka/cursor-partitions.ts";
import { createCursorReader } from "../../../src/sources/kafka/cursor-reader.ts";
import { testIntake } from "../../support/intake.ts";

test("a topic's id is the same from whatever client", () => {
  const id = "S-r_4hh5TkGRTbVqbS9ZAQ";
  const uuid = Buffer.from(id, "base64url").toString("hex");
  const dashed = [
    uuid.slice(0, 8),
    uuid.slice(8, 12),
    uuid.slice(12, 16),
    uuid.slice(16, 20),
    uuid.slice(20),
  ];
  assert.equal(topicIdText(id), id);
  assert.equal(topicIdText("S+r/4hh5TkGRTbVqbS9ZAQ=="), id);
  assert.equal(topicIdText(dashed.join("-")), id);
});

test("wrong options of cursor are refused", () => {
  for (const options of [
    { accept: 5 },
    { accept: [""] },
    { topicIds: { payments: "a@b" } },
    { topicIds: { payments: 7 } },
    { topicIds: null },
    { clusterId: "" },
  ]) {
    assert.throws(() => cursor(options as never), { code: "invalid-option" }, JSON.stringify(options));
  }
});

interface Scene {
  topicId: string | undefined;
  watermarks: Watermarks;
  taken: TakenCursor | Error;
  ended: (Error | undefined)[];
  readonly takings: string[];
  readonly marks: bigint[];
  readonly warnings: string[];
}

function scene(options: Parameters<typeof cursor>[0] = {}) {
  const at: Scene = {
    topicId: "t1",
    watermarks: { low: 0n, high: 100n },
    taken: { kind: "taken", position: { log: "kafka:t/0", epoch: "1" }, incarnation: "t1", applied: 9n },
    ...{ ended: [], takings: [], marks: [], warnings: [] },
  };
  const intake: Intake = testIntake({
    deliver: () => Promise.resolve(),
    end: (error) => void at.ended.push(error),
    warn: (text) => void at.warnings.push(text),
    takeCursor(log) {
      at.takings.push(log);
      return at.taken instanceof Error ? Promise.reject(at.taken) : Promise.resolve(at.taken);
    },
    markEnd(_position, part, end) {
      at.marks.push(end);
      return Promise.resolve({ accept: end <= 9n ? `t1/${part}@${end}` : undefined });
    },
  });
  const session = {
    identify: () => Promise.resolve({ clusterId: undefined, topicId: at.topicId }),
    watermarks: () => Promise.resolve(at.watermarks),
  } as unknown as KafkaSession;
  const reader = createCursorReader(cursor(options), undefined, ["t"], "some-client", () => intake);
  const partitions = createCursorPartitions(reader, () => intake);
  return { at, session, partitions };
}

const assignment: Assignment = { topic: "t", partition: 0, start: 10n };

test("reading begins behind what is applied, whatever the group has committed", async (t) => {
  const { at, session, partitions } = scene();
  t.after(() => partitions.stop());
  await partitions.start(session);
  for (const [start, warns] of [
    [undefined, 0],
    [3n, 0],
    [10n, 0],
    [50n, 1],
  ] as const) {
    at.warnings.length = 0;
    const [taken] = await partitions.take([{ ...assignment, start }]);
    assert.equal(taken?.assignment.start, 10n);
    assert.equal(at.warnings.length, warns);
  }
  at.watermarks = { low: 40n, high: 100n };
  const [taken] = await partitions.take([assignment]);
  assert.equal(taken?.assignment.start, 40n);
  assert.match(String(at.warnings.at(-1)), /is deleted/);
  assert.deepEqual(new Set(at.takings), new Set(["kafka:t/0"]), "without the group's name");
});

test("a log that ends before what is applied is marked, and asked about", async (t) => {
  const { at, session, partitions } = scene();
  t.after(() => partitions.stop());
  await partitions.start(session);
  at.watermarks = { low: 0n, high: 9n };
  await assert.rejects(partitions.take([assignment]), {
    code: "log-changed",
    message: /t\/0 ends at offset 9, and it is applied up to 9: .*accept: "t1\/0@9"/,
  });
  assert.deepEqual(at.marks, [9n]);
});

test("without a topic's id nothing starts, and what is declared must be what is told", async () => {
  const unknown = scene();
  unknown.at.topicId = undefined;
  await assert.rejects(unknown.partitions.start(unknown.session), {
    code: "source-failed",
    message: /some-client does not tell the id of topic t.*topicIds/,
  });
  const other = scene({ topicIds: { t: "t2" } });
  await assert.rejects(other.partitions.start(other.session), { code: "log-changed" });
  assert.deepEqual(await other.partitions.take([assignment]), [], "nothing is taken after that");
});

test("a partition that is given back while the database is away is not taken any more", async (t) => {
  const { at, session, partitions } = scene();
  t.after(() => partitions.stop());
  t.mock.timers.enable({ apis: ["setTimeout"] });
  await partitions.start(session);
  at.taken = new Error("away");
  const taking = partitions.take([assignment]);
  while (at.warnings.length === 0) await new Promise((resolve) => setImmediate(resolve));
  partitions.leave([assignment]);
  t.mock.timers.tick(1_000);
  assert.deepEqual(await taking, []);
  assert.equal(at.takings.length, 1);
});

test("a topic that is made anew while it is read ends the source", async (t) => {
  t.mock.timers.enable({ apis: ["setInterval"] });
  const { at, session, partitions } = scene();
  t.after(() => partitions.stop());
  await partitions.start(session);
  await partitions.take([assignment]);
  at.topicId = "t2";
  t.mock.timers.tick(10_000);
  while (at.ended.length === 0) await new Promise((resolve) => setImmediate(resolve));
  assert.match(String(at.ended[0]), /made anew while it was read: its id was t1, and is t2/);
});

test("a partition that goes back while it is read asks where something behind that is applied, and only there", async (t) => {
  const { at, session, partitions } = scene();
  t.after(() => partitions.stop());
  await partitions.start(session);
  const [taken] = await partitions.take([assignment]);
  const record = { topic: "t", partition: 0, offset: 5n, key: null, value: null, headers: {} };
  for (const [high, text] of [
    [5n, /ends at offset 5, and it was read up to 29/],
    [15n, /nothing behind that is applied. Start again/],
  ] as const) {
    at.watermarks = { low: 0n, high };
    at.ended.length = 0;
    partitions.wentBack(taken!.cursor, record, 30n);
    while (at.ended.length === 0) await new Promise((resolve) => setImmediate(resolve));
    assert.match(String(at.ended[0]), text);
  }
});

test("what was read is handed on once the topic's id was asked for after it was read, in its order", async (t) => {
  const { at, session, partitions } = scene();
  t.after(() => partitions.stop());
  await partitions.start(session);
  await partitions.take([assignment]);
  const answers: (() => void)[] = [];
  session.identify = () =>
    new Promise((resolve) => answers.push(() => resolve({ clusterId: undefined, topicId: at.topicId })));
  const passed: string[] = [];
  const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  const pass = (what: string, topics = ["t"]): Promise<void> =>
    partitions.pass(topics, () => void passed.push(what));
  const first = pass("first");
  await turn();
  assert.equal(answers.length, 1, "asked at once");
  const second = pass("second");
  const mark = pass("mark", []);
  answers.shift()!();
  await first;
  await turn();
  assert.deepEqual(passed, ["first"], "an answer says nothing of what was read after the question");
  assert.equal(answers.length, 1);
  answers.shift()!();
  await Promise.all([second, mark]);
  assert.deepEqual(passed, ["first", "second", "mark"]);

  const third = pass("third");
  await turn();
  at.topicId = "t2";
  answers.shift()!();
  await third;
  await pass("fourth");
  assert.deepEqual(passed, ["first", "second", "mark"], "nothing of the new topic");
  assert.equal((at.ended[0] as { code?: string } | undefined)?.code, "log-changed");
});

test("where the client cannot tell the topic's id nothing is asked for, and nothing is held back", async (t) => {
  const { at, session, partitions } = scene({ topicIds: { t: "t1" } });
  at.topicId = undefined;
  t.after(() => partitions.stop());
  await partitions.start(session);
  await partitions.take([assignment]);
  session.identify = () => Promise.reject(new Error("asked"));
  let passed = 0;
  await partitions.pass(["t"], () => void passed++);
  assert.equal(passed, 1);
});

import assert from "node:assert/strict";
import test from "node:test";
import { batch, formats, PermanentError, type InboxError, type MessageHandler } from "../../../src/index.ts";
import {
  sqsLambda,
  type SqsEvent,
  type SqsLambdaOptions,
  type SqsRecord,
} from "../../../src/sources/sqs/sqs.ts";
import { gate, recordEffect, testInbox, type TestInbox } from "../../inbox/support.ts";
import { until } from "../../support/in-time.ts";
import { ownServer } from "../../support/postgres.ts";
import { body } from "./support.ts";

const identity = formats.sqs({ idPath: "/id" });
const context = (ms: number) => ({ getRemainingTimeInMillis: () => ms });

const record = (id: string, text: string, group?: string): SqsRecord => ({
  messageId: `sqs-${id}`,
  body: text,
  attributes: {
    ApproximateReceiveCount: "1",
    ...(group === undefined ? {} : { MessageGroupId: group }),
  },
  messageAttributes: { kind: { stringValue: "Paid" } },
  eventSourceARN: `arn:aws:sqs:eu-central-1:123456789012:orders${group === undefined ? "" : ".fifo"}`,
});

/** Records `g1` and `h2`: of the groups `g` and `h`. */
const fifo = (...ids: readonly string[]): SqsEvent => ({
  Records: ids.map((id) => record(id, body(id), id.slice(0, 1))),
});
const standard = (...ids: readonly string[]): SqsEvent => ({
  Records: ids.map((id) => record(id, body(id))),
});

const failedIn = async (answer: Promise<{ batchItemFailures: { itemIdentifier: string }[] }>) =>
  (await answer).batchItemFailures.map(({ itemIdentifier }) => itemIdentifier);

/** A handler that fails for ids with `x` in them and notes what it ran. */
function failing(): { handler: MessageHandler; ran: string[] } {
  const ran: string[] = [];
  return {
    ran,
    async handler(message, given) {
      ran.push(message.id);
      await recordEffect(message, given);
      if (message.id.includes("x")) throw new Error("not now");
    },
  };
}

const lambda = (inbox: TestInbox["inbox"], handler: MessageHandler, more: SqsLambdaOptions = {}) =>
  sqsLambda(inbox, handler, { identity, ...more });

test("exactly what is not done is named: failed ones, and nothing that is applied, a duplicate or in quarantine", async (t) => {
  const { inbox, effects, quarantined } = await testInbox(t);
  const { handler, ran } = failing();
  const run = lambda(inbox, async (message, given) => {
    if (message.id === "poison") throw new PermanentError("never");
    await handler(message, given);
  });
  assert.deepEqual(await failedIn(run(standard("a", "bx", "poison", "c", "a"))), ["sqs-bx"]);
  const nameless = { Records: [record("n", "{}"), record("d", body("d"))] };
  assert.deepEqual(await failedIn(run(nameless)), []);
  assert.deepEqual(await effects(), { a: 1, c: 1, d: 1 });
  assert.deepEqual((await quarantined()).map(({ code }) => code).sort(), ["handler-rejected", "no-identity"]);
  // SQS delivers again what was named, and what it forgot.
  assert.deepEqual(await failedIn(run(standard("a", "bx"))), ["sqs-bx"]);
  assert.equal(ran.filter((id) => id === "a").length, 1);
});

test("behind the first of a FIFO group that fails, nothing of it runs and all of it is named; other groups go on", async (t) => {
  const { inbox, effects } = await testInbox(t);
  const { handler, ran } = failing();
  const run = lambda(inbox, handler);
  const answer = run(fifo("g1", "h1", "g2x", "g3", "h2", "g4"));
  assert.deepEqual(await failedIn(answer), ["sqs-g2x", "sqs-g3", "sqs-g4"]);
  assert.deepEqual(await effects(), { g1: 1, h1: 1, h2: 1 });
  assert.deepEqual(
    ran.filter((id) => id.startsWith("g")),
    ["g1", "g2x"],
  );
  assert.ok(ran.indexOf("h1") < ran.indexOf("h2"));
});

test("it answers before the function's time is over; what is not done is rolled back and named", async (t) => {
  const { inbox, effects, pool } = await testInbox(t, { lanes: 2 });
  const { opened, open } = gate();
  let aborted = false;
  const run = lambda(
    inbox,
    async (message, given) => {
      await recordEffect(message, given);
      if (message.id !== "slow") return;
      given.signal.addEventListener("abort", () => (aborted = true));
      await opened;
    },
    // Three seconds to begin, and five to answer: for a busy machine.
    { answerBeforeMs: 5_000 },
  );
  const started = performance.now();
  const records = ["a", "slow", ...Array.from({ length: 250 }, (_, i) => `m${i}`)];
  const failed = await failedIn(run(standard(...records), context(8_000)));
  assert.ok(performance.now() - started < 8_000, "in time");
  assert.ok(aborted, "the handler is told");
  const done = new Set(records.filter((id) => !failed.includes(`sqs-${id}`)));
  assert.ok(failed.includes("sqs-slow"));
  const taken = await effects();
  for (const id of done) assert.equal(taken[id], 1, `${id} is not named, so it must be applied`);
  assert.equal(taken["slow"], undefined);
  const { rows } = await pool.query<{ n: number }>(
    "select count(*)::int as n from pg_locks where relation = 'effect'::regclass",
  );
  assert.deepEqual(rows, [{ n: 0 }], "nothing is left open for the freeze");
  open();
  // The function is not frozen here, so what it had under way may be in the way of the next one for a moment.
  await until("all are done when they come again", async () => {
    const named = await failedIn(run(standard(...records), context(60_000)));
    return { holds: named.length === 0, answer: named };
  });
  assert.deepEqual(
    Object.values(await effects()).filter((n) => n !== 1),
    [],
  );
});

test("a batch handler takes part in the same way", async (t) => {
  const { inbox, effects } = await testInbox(t);
  const run = sqsLambda(
    inbox,
    batch(async (messages, { tx }) => {
      for (const { id } of messages) {
        if (id.includes("x")) throw new Error("not now");
        await tx.query("insert into effect (message_id) values ($1)", [id]);
      }
    }),
    { identity },
  );
  assert.deepEqual(await failedIn(run(standard("a", "bx", "c"))), ["sqs-bx"]);
  assert.deepEqual(await effects(), { a: 1, c: 1 });
});

test("with the database away it fails as a whole, so that Lambda slows down, and all is done when it is back", async (t) => {
  const server = await ownServer(t);
  const { inbox, effects } = await testInbox(t, { connectTimeoutMs: 500 }, { url: server.url });
  const run = lambda(inbox, recordEffect);
  await server.kill();
  // A busy process may not have heard yet that a connection it has is lost.
  const away = { code: /^(?:store-unavailable|connection-lost)$/ };
  await assert.rejects(run(standard("a", "b")), away);
  await assert.rejects(run(fifo("g1", "g2")), away);
  await server.restart();
  assert.deepEqual(await failedIn(run(standard("a", "b"))), []);
  assert.deepEqual(await effects(), { a: 1, b: 1 });
});

test("where the mapping does not read the answer, a batch that is not done whole ends in an error", async (t) => {
  const { inbox, effects } = await testInbox(t);
  const run = lambda(inbox, failing().handler, { reportBatchItemFailures: false });
  await assert.rejects(run(standard("a", "bx")), /1 of 2 messages are not done/);
  assert.deepEqual(await failedIn(run(standard("a"))), []);
  assert.deepEqual(await effects(), { a: 1 });
});

test("a message has the same name through Lambda as through the source, attributes included", async (t) => {
  const { inbox } = await testInbox(t);
  const seen: unknown[] = [];
  const run = sqsLambda(inbox, ({ producer, id, key, headers }) => {
    seen.push([producer, id, key, headers["kind"], headers["inbox-id-rule"]]);
  });
  await run({ Records: [record("1", "x"), record("2", "x", "g")] });
  assert.deepEqual(seen.sort(), [
    ["orders", "sqs-1", undefined, "Paid", "transport-only"],
    ["orders.fifo", "sqs-2", "g", "Paid", "transport-only"],
  ]);
});

test("options that break their rules are refused when the function is made", async (t) => {
  const { inbox } = await testInbox(t);
  assert.throws(
    () => lambda(inbox, recordEffect, { answerBeforeMs: -1 }),
    (error: InboxError) => error.code === "invalid-option",
  );
});

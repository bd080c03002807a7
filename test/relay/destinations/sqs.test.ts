import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { isAgain, isRefused, isSent, type Answer } from "../../../src/relay/answer.ts";
import { keyChains } from "../../../src/relay/destinations/sqs/key-chains.ts";
import { sqsDestination, type SqsDestinationOptions } from "../../../src/relay/destinations/sqs/sqs.ts";
import { effectOf } from "../../../src/relay/effect.ts";
import { sqs } from "../../../src/sources/sqs/sqs.ts";
import { testQueue } from "../../sources/sqs/support.ts";
import { taken } from "../support.ts";
import { roundTrip } from "./round-trip.ts";

type Given = NonNullable<Parameters<typeof taken>[0]>;

const deliver = (
  options: SqsDestinationOptions,
  list: readonly Given[],
): Promise<readonly (Answer | undefined)[]> =>
  sqsDestination(options).deliverBatch!(
    list.map((more, i) => effectOf("there", taken({ digest: String(i).padStart(32, "0"), ...more }))),
    { signal: new AbortController().signal },
  );

const kinds = (answers: readonly (Answer | undefined)[]): string =>
  answers
    .map((answer) => (answer === undefined ? "-" : isSent(answer) ? "s" : isRefused(answer) ? "r" : "a"))
    .join("");

const errorOf = (answer: Answer | undefined): string =>
  answer !== undefined && "error" in answer ? String(answer.error) : "";

test("what is sent twice to a standard queue is applied once by an inbox with default options", async (t) => {
  const queue = await testQueue(t);
  if (queue === undefined) return;
  const { client, queueUrl } = queue;
  const rows = await roundTrip(t, {
    destination: sqsDestination({ client, queueUrl }),
    source: sqs({ client, queueUrl }),
    ...{ copies: 2, keyed: false },
  });
  for (const { id, producer, type, body } of rows) {
    const { n } = JSON.parse(body!) as { n: number };
    assert.deepEqual([id, producer, type], [`receipt/${n}`, "orders", "receipt.asked"]);
  }
});

test("what is sent twice to a FIFO queue is in it once, and a key keeps its order", async (t) => {
  const queue = await testQueue(t, { fifo: true });
  if (queue === undefined) return;
  const { client, queueUrl } = queue;
  const rows = await roundTrip(t, {
    destination: sqsDestination({ client, queueUrl }),
    source: sqs({ client, queueUrl }),
    ...{ copies: 1, keyed: true },
  });
  // A key with a space is no name of a group: its digest is.
  assert.equal(new Set(rows.map(({ key }) => key)).size, 3);
  for (const { key } of rows) assert.match(key!, /^sha256:[0-9a-f]{64}$/);
});

test("a key that SQS takes is the group, and the lane's key", async (t) => {
  const queue = await testQueue(t, { fifo: true });
  if (queue === undefined) return;
  const { client, queueUrl } = queue;
  const answers = await deliver({ client, queueUrl }, [{ id: "a", key: "account-1" }, { id: "b" }]);
  assert.equal(kinds(answers), "ss", answers.map(errorOf).join());
  const { ReceiveMessageCommand } = await import("@aws-sdk/client-sqs");
  const { Messages } = await client.send(
    new ReceiveMessageCommand({
      QueueUrl: queueUrl,
      MaxNumberOfMessages: 10,
      MessageSystemAttributeNames: ["All"],
      MessageAttributeNames: ["All"],
    }),
  );
  assert.deepEqual(
    Messages?.map(({ Attributes, MessageAttributes }) => [
      Attributes?.MessageGroupId,
      Attributes?.MessageDeduplicationId,
      MessageAttributes?.["ce-id"]?.StringValue,
    ]),
    [
      ["account-1", `sha256-${"0".repeat(32)}`, "a"],
      [`sha256-${"0".repeat(31)}1`, `sha256-${"0".repeat(31)}1`, "b"],
    ],
  );
});

test("what SQS cannot carry is refused before it is sent, and only its own key waits behind it", async (t) => {
  const queue = await testQueue(t);
  if (queue === undefined) return;
  const { client, queueUrl } = queue;
  const many = Object.fromEntries(Array.from({ length: 9 }, (_, i) => [`h${i}`, "x"]));
  const answers = await deliver({ client, queueUrl }, [
    { payload: Buffer.from([0xff]), key: "a" },
    { payload: Buffer.from("a\u0001b") },
    { payload: null },
    { headers: many },
    { id: "behind", key: "a" },
    {
      id: "größe 50%",
      key: "b",
      headers: { "a b": "1", "AWS.Trace": "2", "x-lines": "a\u0000b", ce_id: "other" },
    },
    { id: "behind b", key: "b" },
  ]);
  assert.equal(kinds(answers), "rrrr-ss", answers.map(errorOf).join());
  assert.equal((await queue.counts()).waiting, 2);
});

for (const size of [600_000, 2_000_000]) {
  test(`a message of ${size} bytes, more than the queue takes, is refused alone, and its neighbours are sent`, async (t) => {
    const queue = await testQueue(t);
    if (queue === undefined) return;
    const { client, queueUrl } = queue;
    const list: Given[] = Array.from({ length: 25 }, (_, i) => ({
      id: `m${i}`,
      payload: Buffer.alloc(30_000, 97),
    }));
    list[7] = { id: "huge", payload: Buffer.alloc(size, 97) };
    const answers = await deliver({ client, queueUrl }, list);
    assert.equal(kinds(answers), `${"s".repeat(7)}r${"s".repeat(17)}`, answers.map(errorOf).join());
    // The same where the requests are larger than SQS takes: then they are taken apart.
    const apart = await deliver({ client, queueUrl, maxRequestBytes: 10_000_000 }, [
      ...Array.from({ length: 9 }, (_, i): Given => ({ id: `n${i}`, payload: Buffer.alloc(200_000, 97) })),
      list[7],
    ]);
    assert.equal(kinds(apart), `${"s".repeat(9)}r`, apart.map(errorOf).join());
  });
}

test("a queue that is not there, wrong credentials and a server that is away pause the destination; no secret is told", async (t) => {
  const queue = await testQueue(t);
  if (queue === undefined) return;
  const { SQSClient } = await import("@aws-sdk/client-sqs");
  const missing = await deliver({ client: queue.client, queueUrl: `${queue.queueUrl}-not-there` }, [{}]);
  const [gone] = missing;
  assert.ok(
    gone !== undefined && isAgain(gone) && gone.fault === "destination" && !gone.ambiguous,
    errorOf(gone),
  );
  const client = new SQSClient({
    ...{ endpoint: "http://127.0.0.1:1", region: "eu-central-1", maxAttempts: 1 },
    credentials: { accessKeyId: "a", secretAccessKey: "s3cr3t-w0rd" },
  });
  const [away] = await deliver({ client, queueUrl: "http://127.0.0.1:1/1/q" }, [{}]);
  client.destroy();
  assert.ok(away !== undefined && isAgain(away) && away.fault === "destination" && !away.ambiguous);
  assert.doesNotMatch(errorOf(away), /s3cr3t/);
});

/** A client that answers as a test says. */
const answering = (answer: (entries: readonly { Id: string; MessageBody: string }[]) => unknown) => ({
  send: (command: { input: { Entries: { Id: string; MessageBody: string }[] } }) =>
    Promise.resolve().then(() => answer(command.input.Entries)),
});

test("of a request that is done in part each message has its own answer", async () => {
  const client = answering((entries) => ({
    Successful: [{ Id: entries[0]!.Id, MessageId: "x" }],
    Failed: [
      { Id: entries[1]!.Id, Code: "InternalError", SenderFault: false },
      { Id: entries[2]!.Id, Code: "InvalidParameterValue", SenderFault: true },
      { Id: entries[3]!.Id, Code: "KmsThrottled", SenderFault: true },
    ],
  })) as never;
  const answers = await deliver({ client, queueUrl: "http://localhost/1/q" }, [{}, {}, {}, {}, {}]);
  assert.equal(kinds(answers), "saraa");
  const [, internal, , throttled, unnamed] = answers;
  for (const answer of [internal, throttled]) {
    assert.ok(answer !== undefined && isAgain(answer) && answer.fault === "destination" && !answer.ambiguous);
  }
  assert.ok(unnamed !== undefined && isAgain(unnamed) && unnamed.ambiguous);
});

test("a request whose answer is lost is ambiguous, whatever was in it", async () => {
  for (const error of [
    Object.assign(new Error("reset"), { code: "ECONNRESET" }),
    Object.assign(new Error("late"), { name: "TimeoutError" }),
    Object.assign(new Error("aborted"), { name: "AbortError" }),
  ]) {
    const client = answering(() => {
      throw error;
    }) as never;
    const answers = await deliver({ client, queueUrl: "http://localhost/1/q" }, [{}, {}]);
    for (const answer of answers) {
      assert.ok(
        answer !== undefined && isAgain(answer) && answer.ambiguous && answer.fault === "destination",
      );
    }
  }
});

test("no message of a key is sent beside or before an earlier one, however requests end", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(
        fc.record({
          key: fc.option(fc.constantFrom("a", "b", "c")),
          ends: fc.constantFrom("s", "s", "s", "a", "throws"),
        }),
        {
          maxLength: 60,
        },
      ),
      fc.integer({ min: 1, max: 5 }),
      async (list, requests) => {
        const running = new Set<string>();
        const arrived: number[] = [];
        const client = {
          async send(command: { input: { Entries: { Id: string; MessageBody: string }[] } }) {
            const { Entries } = command.input;
            const keys = Entries.map(({ MessageBody }) => list[Number(MessageBody)]!.key).filter(
              (key) => key !== null,
            );
            assert.equal(new Set(keys).size, keys.length, "one of a key in a request");
            assert.ok(Entries.length <= 10);
            for (const key of keys) {
              assert.ok(!running.has(key), "one of a key at once");
              running.add(key);
            }
            await new Promise(setImmediate);
            for (const key of keys) running.delete(key);
            const ends = Entries.map(({ MessageBody }) => list[Number(MessageBody)]!.ends);
            if (ends.includes("throws")) throw new Error("broken");
            const named = Entries.map(({ Id, MessageBody }, i) => ({
              Id,
              n: Number(MessageBody),
              ok: ends[i] === "s",
            }));
            for (const { n, ok } of named) if (ok) arrived.push(n);
            return {
              Successful: named.filter(({ ok }) => ok),
              Failed: named.filter(({ ok }) => !ok).map(({ Id }) => ({ Id, Code: "InternalError" })),
            };
          },
        };
        const answers = await deliver(
          { client: client, queueUrl: "http://localhost/1/q", requests },
          list.map(({ key }, i) => ({ id: `m${i}`, payload: Buffer.from(String(i)), key: key ?? undefined })),
        );
        for (const key of ["a", "b", "c"]) {
          const all = list.flatMap((one, i) => (one.key === key ? [i] : []));
          assert.deepEqual(
            arrived.filter((n) => list[n]!.key === key),
            all.slice(0, arrived.filter((n) => list[n]!.key === key).length),
          );
          const text = kinds(all.map((i) => answers[i]));
          assert.match(text, /^s*(a-*)?$/);
        }
        assert.equal(kinds(answers).replace(/[^s]/g, "").length, arrived.length);
      },
    ),
    { numRuns: 100 },
  );
});

test("chains hand out every item once while all arrive", () => {
  const items = ["a", "b", "a", undefined, "b", "a"].map((key, n) => ({ key, n }));
  const chains = keyChains(items);
  const order: number[] = [];
  for (let item = chains.next(); item !== undefined; item = chains.next()) {
    order.push(item.n);
    chains.arrived(item);
  }
  assert.deepEqual(order, [0, 1, 3, 2, 4, 5]);
});

test("options that break their rule are refused", () => {
  const client = { send: () => Promise.reject(new Error("never")) };
  const queueUrl = "http://localhost/1/q";
  for (const wrong of [
    { queueUrl },
    { client: {}, queueUrl },
    { client, queueUrl: "q" },
    { client, queueUrl, requests: 0 },
    { client, queueUrl, maxRequestBytes: 1 },
  ]) {
    assert.throws(() => sqsDestination(wrong as never), { code: "invalid-option" });
  }
});

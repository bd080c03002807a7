import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { as4 } from "../../../src/message/formats/as4.ts";
import type { Format, RawDelivery } from "../../../src/message/formats/format.ts";
import { formatByName } from "../../../src/message/formats/formats.ts";
import { identityDigest } from "../../../src/message/identity.ts";
import { sampleBytes } from "../samples.ts";
import { readAll, readOne } from "./read.ts";

// Two deliveries of one message give one identity, however the second was written.

const text = fc
  .string({ unit: "grapheme", minLength: 1, maxLength: 20 })
  .filter((value) => !value.includes("\0"));
const data = fc.jsonValue({ maxDepth: 3 });

/** The same value with its keys in another order. */
function shuffled(value: unknown, seed: number): unknown {
  if (Array.isArray(value)) return value.map((item) => shuffled(item, seed));
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([key, part]) => [key, shuffled(part, seed)] as const);
  const turn = entries.length === 0 ? 0 : seed % entries.length;
  return Object.fromEntries([...entries.slice(turn), ...entries.slice(0, turn)].reverse());
}

/** Another way to write the same JSON: other order, other white space, other escapes. */
const rewritten = (value: unknown, seed: number): string => {
  const written = JSON.stringify(shuffled(value, seed), null, seed % 3);
  return seed % 2 === 0
    ? written
    : written.replace(/[\u0080-\uffff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
};

const documents: Readonly<
  Record<string, { format: Format; document: fc.Arbitrary<object>; rest?: Partial<RawDelivery> }>
> = {
  CloudEvents: {
    format: formatByName("cloudevents"),
    document: fc.record({
      specversion: fc.constant("1.0"),
      id: text,
      source: text,
      type: text,
      subject: text,
      data,
    }),
  },
  EventBridge: {
    format: formatByName("eventbridge"),
    document: fc.record({
      id: text,
      source: text,
      account: text,
      "detail-type": text,
      detail: data,
      region: text,
    }),
  },
  "plain JSON": {
    format: formatByName("json", { idPath: "/meta/id", keyPath: "/key", producer: "p" }),
    document: fc.record({ meta: fc.record({ id: text, at: data }), key: text, data }),
  },
  S3: {
    format: formatByName("s3"),
    document: fc
      .record({ key: text, sequencer: text, bucket: text, more: data })
      .map(({ key, sequencer, bucket, more }) => ({
        Records: [
          {
            eventName: "e",
            s3: { bucket: { arn: bucket }, object: { key: encodeURIComponent(key), sequencer } },
            more,
          },
        ],
      })),
  },
  "Debezium changes": {
    format: formatByName("debezium-change"),
    document: fc.record({
      op: fc.constantFrom("c", "u", "d"),
      source: fc.record({ connector: fc.constant("postgresql"), lsn: fc.nat(), name: text, table: text }),
      after: data,
    }),
    rest: { key: '{"id":4}' },
  },
  "Debezium outbox": {
    format: formatByName("debezium-outbox"),
    document: fc.record({ data }),
    rest: { headers: { id: "1" }, channel: "outbox.event.order" },
  },
};

for (const [name, { format, document, rest }] of Object.entries(documents)) {
  test(`${name}: a message that is written again keeps its identity, its key and its canonical fingerprint`, () => {
    fc.assert(
      fc.property(document, fc.nat(), (value, seed) => {
        const first = readOne(format, { ...rest, body: JSON.stringify(value) });
        const again = readOne(format, { ...rest, body: Buffer.from(rewritten(value, seed)) });
        assert.equal(identityDigest("c", again), identityDigest("c", first));
        assert.equal(again.key, first.key);
        assert.deepEqual(again.fingerprint("j"), first.fingerprint("j"));
      }),
      { numRuns: 300 },
    );
  });
}

test("S3 through SNS, in a queue twice: one identity", () => {
  fc.assert(
    fc.property(text, text, text, (key, first, second) => {
      const record = {
        eventName: "e",
        s3: { bucket: { arn: "b" }, object: { key: encodeURIComponent(key), sequencer: "1" } },
      };
      const inSns = (id: string): string =>
        JSON.stringify({
          Type: "Notification",
          MessageId: id,
          TopicArn: "t",
          Message: JSON.stringify({ Records: [record] }),
        });
      const [a] = readAll(formatByName("s3"), { body: inSns(first), properties: { MessageId: "1" } });
      const [b] = readAll(formatByName("s3"), { body: inSns(second), properties: { MessageId: "2" } });
      assert.equal(identityDigest("c", a!), identityDigest("c", b!));
    }),
  );
});

test("AS4: a resend with another prefix, timestamp, white space and layout keeps identity and fingerprint", () => {
  const envelope = sampleBytes("15-as4-usermessage.xml").toString();
  const first = readOne(as4(), { body: envelope });
  const prefix = fc.constantFrom("ns1", "eb3", "a", "_x");
  const space = fc.constantFrom("", " ", "\n\t", "\r\n  ", "<!-- resent -->");
  fc.assert(
    fc.property(
      prefix,
      prefix,
      space,
      space,
      fc.integer({ min: 10, max: 23 }),
      (eb, soap, before, after, hour) => {
        if (eb === soap) return;
        const resend = envelope
          .replaceAll(/(<\/?)eb:/g, `$1${eb}:`)
          .replaceAll(/(<\/?)S12:/g, `$1${soap}:`)
          .replace("xmlns:eb=", `xmlns:${eb}=`)
          .replace("xmlns:S12=", `xmlns:${soap}=`)
          .replace("S12:mustUnderstand", `${soap}:mustUnderstand`)
          .replace("T08:", `T${hour}:`)
          .replaceAll(
            /(<\w+:(?:MessageId|ConversationId|Action|PartyId)[^>]*>)([^<]*)/g,
            `$1${before}$2${after}`,
          )
          .replaceAll(/>\s+</g, `>${after}<`);
        const again = readOne(as4(), { body: resend });
        assert.equal(identityDigest("c", again), identityDigest("c", first));
        assert.deepEqual(again.fingerprint("b"), first.fingerprint("b"));
        assert.equal(again.key, first.key);
      },
    ),
  );
});

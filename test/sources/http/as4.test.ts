import assert from "node:assert/strict";
import test from "node:test";
import { gzipSync } from "node:zlib";
import { quarantine, retryIn } from "../../../src/index.ts";
import { readEnvelope } from "../../../src/message/formats/as4-envelope.ts";
import { copyUserMessage } from "../../../src/sources/http/as4-user-message.ts";
import type { HttpReceiverOptions } from "../../../src/sources/http/http.ts";
import { sampleBytes } from "../../message/samples.ts";
import type { Scope } from "../../support/cleanup.ts";
import { httpCase, record } from "./support.ts";

const userMessage = sampleBytes("15-as4-usermessage.xml").toString();
const id = "b1f5c0de-0001-4a7e-9a55-0a1b2c3d4e5f@seller.example.test";
const soap = { "content-type": "application/soap+xml; charset=UTF-8" };

const as4 = (t: Scope, more: Partial<HttpReceiverOptions> = {}) =>
  httpCase(t, {
    identity: "as4",
    now: () => Date.UTC(2026, 2, 2),
    as4: { domain: "buyer.example.test" },
    ...more,
  });

test("a user message is answered with its receipt, a resend with the same receipt, byte for byte", async (t) => {
  let now = Date.UTC(2026, 2, 2);
  const { send, effects } = await as4(t, { now: () => now });
  const first = await send({ headers: soap, body: userMessage });
  assert.deepEqual(
    [first.status, first.headers["content-type"]],
    [200, "application/soap+xml; charset=UTF-8"],
  );
  const receipt = first.body.toString();
  assert.match(
    receipt,
    /<eb:Timestamp>2026-03-02T00:00:00\.000Z<\/eb:Timestamp><eb:MessageId>[0-9a-f-]{36}@buyer\.example\.test</,
  );
  assert.match(receipt, new RegExp(`<eb:RefToMessageId>${id}</eb:RefToMessageId>`));
  assert.equal(readEnvelope(first.body), "signal", "our own reader takes it for a signal");

  now += 60_000;
  // What a resend may change: the prefix, the timestamp, white space round the id.
  const resend = userMessage
    .replaceAll("eb:", "ns7:")
    .replace("xmlns:eb=", "xmlns:ns7=")
    .replace("08:15:30.000Z", "08:25:30.000Z")
    .replace(`>${id}<`, `>\n  ${id} <`);
  const again = await send({ headers: soap, body: resend });
  assert.equal(again.status, 200);
  assert.deepEqual(again.body, first.body);
  assert.deepEqual(await effects(), { [id]: 1 });
});

test("a message that failed gets no receipt; the resend that is applied gets one", async (t) => {
  let runs = 0;
  const { send } = await as4(t, {
    handler: async (message, context) => {
      runs++;
      if (runs === 1) throw new Error("secret");
      if (runs === 2) return retryIn(3_000);
      return record(message, context);
    },
  });
  const failed = await send({ headers: soap, body: userMessage });
  const deferred = await send({ headers: soap, body: userMessage });
  assert.deepEqual([failed.status, deferred.status, deferred.headers["retry-after"]], [500, 503, "3"]);
  for (const { body } of [failed, deferred]) assert.doesNotMatch(body.toString(), /Receipt|secret/);
  const applied = await send({ headers: soap, body: userMessage });
  assert.match(applied.body.toString(), /<eb:Receipt>/);
});

test("a message that went to quarantine has arrived: one receipt, for every copy", async (t) => {
  const { send, quarantined } = await as4(t, { handler: () => quarantine("unknown agreement") });
  const [first, second] = [await send({ body: userMessage }), await send({ body: userMessage })];
  assert.match(first.body.toString(), /<eb:Receipt>/);
  assert.deepEqual(second.body, first.body);
  assert.equal((await quarantined()).length, 1);
});

test("an id that comes with another content gets an error signal, not the receipt of the other message", async (t) => {
  const { send, quarantined, effects } = await as4(t);
  await send({ headers: soap, body: userMessage });
  const other = await send({ headers: soap, body: userMessage.replace("SubmitOrder", "CancelOrder") });
  assert.equal(other.status, 200);
  assert.match(other.body.toString(), /errorCode="EBMS:0003".*refToMessageInError="b1f5c0de/);
  assert.doesNotMatch(other.body.toString(), /Receipt/);
  assert.deepEqual(
    (await quarantined()).map(({ code }) => code),
    ["payload-conflict"],
  );
  assert.deepEqual(await effects(), { [id]: 1 });
});

test("a DOCTYPE is 400, is not parsed, and leaves nothing behind", async (t) => {
  const { send, pool, quarantined } = await as4(t, { verify: () => true });
  const answer = await send({ headers: soap, body: sampleBytes("17-as4-xxe-attempt.xml") });
  assert.equal(answer.status, 400);
  assert.match(answer.body.toString(), /"code":"unsafe-xml"/);
  assert.deepEqual(await quarantined(), []);
  assert.equal((await pool.query("select from message")).rowCount, 0);
  assert.equal((await send({ headers: soap, body: "<a/>" })).status, 400);
});

test("a receipt that comes in, and any other signal, is acknowledged and counted", async (t) => {
  const { send, receiver } = await as4(t);
  const { body } = await send({ headers: soap, body: userMessage });
  const answer = await send({ headers: soap, body });
  assert.deepEqual([answer.status, answer.body.length], [204, 0]);
  assert.deepEqual(Object.values(receiver.ignored()), [1]);
});

test("a receipt is signed by the function that is given, once, and kept as signed", async (t) => {
  let signed = 0;
  const { send } = await as4(t, {
    as4: {
      sign: async (envelope, { body }) => {
        signed++;
        assert.equal(Buffer.from(body).toString(), userMessage);
        return {
          contentType: "application/soap+xml",
          body: Buffer.from(`${envelope}<!-- signature ${signed} -->`),
        };
      },
    },
  });
  const [first, second] = [await send({ body: userMessage }), await send({ body: userMessage })];
  assert.match(first.body.toString(), /signature 1 -->$/);
  assert.deepEqual(second.body, first.body);
  assert.equal(signed, 1);
});

test("a MIME message with its part is taken, and the copy in the receipt says all that the header said", async (t) => {
  const { send } = await as4(t);
  const body = Buffer.concat([
    Buffer.from(`--b1\r\nContent-ID: <soap@x>\r\n\r\n${userMessage}\r\n`),
    Buffer.from("--b1\r\nContent-ID: <order-2026-0001@seller.example.test>\r\n\r\n"),
    gzipSync("<order/>"),
    Buffer.from("\r\n--b1--\r\n"),
  ]);
  const answer = await send({
    headers: { "content-type": 'multipart/related; boundary="b1"; start="<soap@x>"' },
    body,
  });
  const receipt = answer.body.toString();
  const [copy = ""] = /<eb:UserMessage[\s\S]*<\/eb:UserMessage>/.exec(receipt) ?? [];
  const original = /<eb:UserMessage[\s\S]*<\/eb:UserMessage>/.exec(userMessage)![0];
  assert.equal(copy, original);
  const envelope = (inside: string): Buffer => Buffer.from(userMessage.replace(original, inside));
  assert.deepEqual(readEnvelope(envelope(copy)), readEnvelope(Buffer.from(userMessage)));
});

test("the copy of a user message stands by itself, whatever prefixes, attributes and characters it had", () => {
  const envelope = `<E xmlns="http://www.w3.org/2003/05/soap-envelope"><m:UserMessage
    xmlns:m="http://docs.oasis-open.org/ebxml-msg/ebms/v3.0/ns/core/200704/" xmlns:z="urn:z" z:a="&quot;&#10;&lt;" mpc="x">a&amp;&lt;b]]&gt;<![CDATA[<&]]><z:e xml:lang="en" xmlns=""><plain/></z:e></m:UserMessage></E>`;
  assert.equal(
    copyUserMessage(envelope),
    '<eb:UserMessage xmlns:a0="urn:z" a0:a="&quot;&#10;&lt;" mpc="x">a&amp;&lt;b]]&gt;&lt;&amp;' +
      '<x:e xmlns:x="urn:z" xml:lang="en"><plain></plain></x:e></eb:UserMessage>',
  );
});

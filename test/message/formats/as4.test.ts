import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { as4 } from "../../../src/message/formats/as4.ts";
import { identityDigest } from "../../../src/message/identity.ts";
import { sampleBytes } from "../samples.ts";
import { ignoreOne, readOne, refuseOne } from "./read.ts";

const envelope = sampleBytes("15-as4-usermessage.xml").toString();
const order = "<Order>1</Order>";

interface Part {
  readonly id: string;
  readonly content: Uint8Array;
  readonly headers?: string;
}

const multipart = (soap: string, parts: readonly Part[], boundary = "b1"): Buffer =>
  Buffer.concat([
    Buffer.from(
      `preamble --${boundary} is no boundary\r\n--${boundary}\r\nContent-Type: application/soap+xml;\r\n charset=UTF-8\r\nContent-ID: <soap@x>\r\n\r\n${soap}\r\n`,
    ),
    ...parts.flatMap(({ id, content, headers = "" }) => [
      Buffer.from(`--${boundary}\r\nContent-ID: <${id}>\r\n${headers}Content-Type: application/gzip\r\n\r\n`),
      content,
      Buffer.from("\r\n"),
    ]),
    Buffer.from(`--${boundary}--\r\n`),
  ]);
const contentType = 'Multipart/Related; type="application/soap+xml"; boundary="b1"; start="<soap@x>"';
const cid = "order-2026-0001@seller.example.test";
const delivery = (body: Buffer): { headers: object; body: Buffer } => ({
  headers: { "content-type": contentType },
  body,
});
const attached: Part = { id: cid, content: gzipSync(order) };

test("a MIME message's payload is its part, decompressed, so that another compression of it is no conflict", () => {
  const message = readOne(as4(), delivery(multipart(envelope, [attached])));
  assert.equal(message.text(), order);
  assert.equal(message.id, "b1f5c0de-0001-4a7e-9a55-0a1b2c3d4e5f@seller.example.test");
  const resend = multipart(envelope.replace("08:15:30", "09:15:30"), [
    { ...attached, content: gzipSync(order, { level: 1 }) },
  ]);
  assert.deepEqual(readOne(as4(), delivery(resend)).fingerprint("b"), message.fingerprint("b"));
  const other = multipart(envelope, [{ ...attached, content: gzipSync("<Order>2</Order>") }]);
  assert.notDeepEqual(readOne(as4(), delivery(other)).fingerprint("b"), message.fingerprint("b"));
});

test("a file may carry the MIME headers itself, or begin with its boundary, or be encoded in base64", () => {
  const body = multipart(envelope, [attached]);
  const whole = Buffer.concat([
    Buffer.from(`MIME-Version: 1.0\r\nContent-Type: ${contentType}\r\n\r\n`),
    body,
  ]);
  const bare = body.subarray(body.indexOf("--b1\r\n"));
  const base64: Part = {
    id: cid,
    content: Buffer.from(
      attached.content.toString() &&
        Buffer.from(attached.content).toString("base64").replace(/.{40}/g, "$&\r\n"),
    ),
    headers: "Content-Transfer-Encoding: base64\r\n",
  };
  for (const file of [whole, bare, multipart(envelope, [base64]).subarray(body.indexOf("--b1\r\n"))]) {
    assert.equal(readOne(as4(), { body: file }).text(), order);
  }
});

test("several parts are a JSON list in the order of the envelope", () => {
  const twoParts = envelope.replace(
    /<eb:PartInfo[\s\S]*<\/eb:PartInfo>/,
    '<eb:PartInfo href="cid:b"/><eb:PartInfo href="cid:a%40x"/>',
  );
  const message = readOne(
    as4(),
    delivery(
      multipart(twoParts, [
        { id: "a@x", content: Buffer.from("A") },
        { id: "b", content: Buffer.from("B") },
      ]),
    ),
  );
  assert.deepEqual(message.json(), [
    { href: "cid:b", mimeType: "", base64: "Qg==" },
    { href: "cid:a%40x", mimeType: "", base64: "QQ==" },
  ]);
});

test("a payload in the SOAP body is taken as it is written", () => {
  const inBody = envelope.replace("<S12:Body/>", `<S12:Body>${order}</S12:Body>`);
  assert.equal(readOne(as4(), { body: inBody }).text(), order);
});

test("an envelope alone is compared by what it says: another action or party is a conflict or another message", () => {
  const first = readOne(as4(), { body: envelope });
  const action = readOne(as4(), { body: envelope.replace("SubmitOrder", "CancelOrder") });
  assert.equal(identityDigest("c", first), identityDigest("c", action));
  assert.notDeepEqual(first.fingerprint("b"), action.fingerprint("b"));
  const sender = readOne(as4(), { body: envelope.replace("9900000000017", "9900000000018") });
  assert.notEqual(identityDigest("c", first), identityDigest("c", sender));
});

test("comments and CDATA inside an id are read through, UTF-16 is read, numbers stay texts", () => {
  const id = "b1f5c0de-0001-4a7e-9a55-0a1b2c3d4e5f@seller.example.test";
  const odd = envelope.replace(id, "00<!-- x -->4<![CDATA[2&]]>");
  assert.equal(readOne(as4(), { body: odd }).id, "0042&");
  const utf16 = Buffer.concat([
    Buffer.of(0xff, 0xfe),
    Buffer.from(envelope.replace('encoding="UTF-8"', 'encoding="UTF-16"'), "utf16le"),
  ]);
  assert.equal(readOne(as4(), { body: utf16 }).id, id);
});

test("signals are ignored", () => {
  const signal = envelope.replace(
    /<eb:UserMessage[\s\S]*<\/eb:UserMessage>/,
    "<eb:SignalMessage><eb:Receipt/></eb:SignalMessage>",
  );
  assert.match(ignoreOne(as4(), { body: signal }), /signal/);
});

const user = /<eb:UserMessage[\s\S]*<\/eb:UserMessage>/.exec(envelope)![0];
const refusals: readonly (readonly [string, string | Uint8Array | null, string])[] = [
  ["no MessageId", envelope.replace(/<eb:MessageId>.*<\/eb:MessageId>/, ""), "no-identity"],
  [
    "an empty MessageId",
    envelope.replace(/<eb:MessageId>.*<\/eb:MessageId>/, "<eb:MessageId> \n </eb:MessageId>"),
    "no-identity",
  ],
  ["no sender", envelope.replace(/<eb:From>.*<\/eb:From>/, ""), "no-identity"],
  [
    "two MessageIds",
    envelope.replace("<eb:MessageId>", "<eb:MessageId>a</eb:MessageId><eb:MessageId>"),
    "malformed",
  ],
  ["an element inside its MessageId", envelope.replace("<eb:MessageId>", "<eb:MessageId><x/>"), "malformed"],
  ["two user messages", envelope.replace(user, user + user), "malformed"],
  [
    "its user message outside the header",
    envelope.replace(user, "").replace("<S12:Body/>", `<S12:Body>${user}</S12:Body>`),
    "malformed",
  ],
  [
    "its elements in another namespace",
    envelope.replace("/ns/core/200704/", "/ns/core/000000/"),
    "malformed",
  ],
  ["an undeclared entity", envelope.replace("SubmitOrder", "&host;"), "malformed"],
  ["a NUL reference in its id", envelope.replace("b1f5c0de", "&#0;"), "malformed"],
  ["an unclosed element", envelope.slice(0, -20), "malformed"],
  ["bytes that are no UTF-8", Buffer.concat([Buffer.of(0xff), Buffer.from(envelope)]), "malformed"],
  ["no XML", "hello", "malformed"],
  ["nothing", "", "malformed"],
  ["no body", null, "malformed"],
  ["nesting without end", "<a>".repeat(100_000), "malformed"],
  ["a DOCTYPE after a comment", envelope.replace("?>", "?><!-- c --><?pi?>\n<!DOCTYPE a>"), "unsafe-xml"],
  ["a DOCTYPE in lower case", envelope.replace("?>", "?><!doctype a>"), "unsafe-xml"],
];

for (const [what, body, code] of refusals) {
  test(`an AS4 message with ${what} is ${code}, and kept`, () => {
    const rejected = refuseOne(as4(), { body });
    assert.equal(rejected.rejected.code, code);
    assert.deepEqual(
      rejected.bytes === null ? null : Buffer.from(rejected.bytes),
      body === null ? null : Buffer.from(body),
    );
  });
}

test("a part that is missing, no gzip, or a bomb is refused", () => {
  const codeOf = (parts: readonly Part[], options = {}): string =>
    refuseOne(as4(options), delivery(multipart(envelope, parts))).rejected.code;
  assert.equal(codeOf([]), "malformed");
  assert.equal(codeOf([{ ...attached, content: Buffer.from("no gzip") }]), "malformed");
  const bomb = { ...attached, content: gzipSync(Buffer.alloc(10_000_000)) };
  assert.equal(codeOf([bomb], { maxPayloadBytes: 1_000_000 }), "too-large");
  assert.equal(readOne(as4(), delivery(multipart(envelope, [bomb]))).bytes!.length, 10_000_000);
});

test("a part that is named twice is refused, however often it is named", () => {
  const info = '<eb:PartInfo href="cid:a"/>';
  const named = envelope.replace(/<eb:PartInfo[\s\S]*<\/eb:PartInfo>/, info.repeat(10_000));
  const body = multipart(named, [{ id: "a", content: Buffer.alloc(1_000_000, "x") }]);
  assert.equal(refuseOne(as4(), delivery(body)).rejected.code, "malformed");
});

test("a MIME body that is cut short, or without boundary, is malformed", () => {
  const body = multipart(envelope, [attached]);
  for (const end of [10, 200, body.length - 10]) {
    assert.equal(refuseOne(as4(), delivery(body.subarray(0, end))).rejected.code, "malformed");
  }
  const without = { headers: { "content-type": "multipart/related" }, body };
  assert.equal(refuseOne(as4(), without).rejected.code, "malformed");
});

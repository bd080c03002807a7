import { isRejected } from "../../../src/message/message.ts";
import type { RawDelivery } from "../../../src/message/formats/format.ts";
import { allFormats } from "./corpus.ts";

// Reads every hostile input with every format and prints what came of it. Run by hostile.test.ts, with little memory.

const size = 2_000_000;
const many = (text: string, bytes = size): string => text.repeat(Math.ceil(bytes / text.length));
const envelope = (inside: string): string =>
  `<S:Envelope xmlns:S="http://www.w3.org/2003/05/soap-envelope" xmlns:eb="http://docs.oasis-open.org/ebxml-msg/ebms/v3.0/ns/core/200704/"><S:Header><eb:Messaging><eb:UserMessage>${inside}`;

const inputs: Readonly<Record<string, RawDelivery>> = {
  "open arrays": { body: many("[") },
  "open objects": { body: many('{"a":') },
  "one long text": { body: `{"id":"${many("x")}"}` },
  escapes: { body: `{"id":"${many("\\u0041")}"}` },
  "open string of backslashes": { body: `{"id":"${many("\\\\")}` },
  "a million keys": { body: `{${Array.from({ length: 150_000 }, (_, i) => `"k${i}":1`).join()}}` },
  "one key again and again": { body: `{${many('"id":"1",')}"id":"1"}` },
  "long number": { body: `{"id":${many("9")}}` },
  "long exponent": { body: `{"id":"1","specversion":"1.0","source":"s","type":"t","data":1e${many("9")}}` },
  zeros: { body: `{"id":"1","specversion":"1.0","source":"s","type":"t","data":0.${many("0")}1}` },
  "white space": { body: many(" ") },
  "batch of nothing": {
    body: `[${many("{},", 500_000)}{}]`,
    headers: { "content-type": "application/cloudevents-batch+json" },
  },
  "records of nothing": { body: `{"Records":[${many("{},", 500_000)}{}]}` },
  "numbers only": { body: many("7") },
  "release characters": { body: `UNB+UNOC:3+${many("?")}` },
  "plus signs": { body: `UNB+UNOC:3+${many("+")}'` },
  "interchanges cut short": { body: many("UNB+UNOC:3+a:1+b:1+260302:0915+1'", 500_000) },
  "empty segments": { body: `UNB+UNOC:3+a:1+b:1+260302:0915+1'${many("'")}` },
  "una after una": { body: many("UNA:+.? '") },
  "x segments": {
    body: `ISA*00*          *00*          *ZZ*${"S".padEnd(15)}*01*${"R".padEnd(15)}*260302*0915*U*00401*000000905*0*P*>~${many("GS*1~")}`,
  },
  "open elements": { body: envelope(many("<a>")) },
  attributes: { body: `<a ${Array.from({ length: 100_000 }, (_, i) => `a${i}="1"`).join(" ")}/>` },
  namespaces: {
    body: `<a ${Array.from({ length: 60_000 }, (_, i) => `xmlns:n${i}="u"`).join(" ")}>${many("<n1:b/>", 300_000)}</a>`,
  },
  "long element names": {
    body: `${Array.from({ length: 150 }, () => `<${"n".repeat(5_000)}>`).join("")}${many("<b/>", 300_000)}`,
  },
  comments: { body: many("<!---->") },
  "open comment": { body: `<!--${many("-")}` },
  "processing instructions": { body: many("<?a?>") },
  "text in an id": { body: envelope(`<eb:MessageInfo><eb:MessageId>${many(" ")}`) },
  parts: { body: envelope(`<eb:PayloadInfo>${many('<eb:PartInfo href="cid:a"/>', 500_000)}`) },
  boundaries: { body: many("--b\r\n\r\n"), headers: { "content-type": "multipart/related; boundary=b" } },
  "half boundaries": {
    body: `--b\r\n\r\n${many("x--b")}`,
    headers: { "content-type": "multipart/related; boundary=b" },
  },
  "header lines": {
    body: `--b\r\n${many("A: b\r\n")}`,
    headers: { "content-type": "multipart/related; boundary=b" },
  },
  "content type": { body: "{}", headers: { "content-type": `multipart/related;${many(";")}` } },
  "long header": {
    body: "{}",
    headers: { id: many("x"), ce_id: many("%41"), "ce-id": many("%41"), "webhook-id": many("\0") },
  },
  "many headers": {
    body: "{}",
    headers: Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => [`ce_a${i}`, "1"])),
  },
  "many values": {
    body: "{}",
    headers: {
      id: Array.from({ length: 200_000 }, () => Buffer.from("a")),
      ce_id: Array.from({ length: 200_000 }, () => "a"),
    },
  },
  bytes: { body: Buffer.alloc(size, 0xff) },
  "nul bytes": { body: Buffer.alloc(size) },
};

for (const [name, delivery] of Object.entries(inputs)) {
  for (const format of allFormats) {
    const started = process.hrtime.bigint();
    const [item] = format.read(delivery);
    const kind = item?.kind === "message" ? (isRejected(item.received) ? "rejected" : "message") : item?.kind;
    if (item?.kind === "message" && !isRejected(item.received)) item.received.fingerprint("j");
    console.log(`${format.name} ${name}: ${kind} ${(process.hrtime.bigint() - started) / 1_000_000n} ms`);
  }
}

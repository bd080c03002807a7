import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { edifact } from "../../../src/message/formats/edifact.ts";
import { edifactDecoder } from "../../../src/message/formats/edifact-charset.ts";
import { x12 } from "../../../src/message/formats/x12.ts";
import { identityDigest } from "../../../src/message/identity.ts";
import type { Message } from "../../../src/message/message.ts";
import { ignoreOne, readAll, readOne, refuseOne } from "./read.ts";

const digest = (message: Message): string => identityDigest("c", message);

const interchange = (
  reference: string,
  changes: { sender?: string; charset?: string; body?: string; rest?: string; una?: string } = {},
): string => {
  const {
    sender = "990:14",
    charset = "UNOC:3",
    body = "UNH+1+ORDERS:D:96A:UN'BGM+220+1+9'UNT+3+1'",
    rest = "",
    una = "",
  } = changes;
  return `${una}UNB+${charset}+${sender}+991:14+260302:0915+${reference}${rest}'${body}UNZ+1+${reference}'`;
};

test("whatever separators a UNA chooses, and whatever the reference holds, it is read as it was meant", () => {
  const separators = fc.shuffledSubarray([...":+?'*|~^!#"], { minLength: 4, maxLength: 4 });
  const reference = fc
    .array(fc.constantFrom(..."A1:+?'*|~^!# "), { minLength: 1, maxLength: 14 })
    .map((list) => list.join(""));
  fc.assert(
    fc.property(
      separators,
      reference,
      fc.constantFrom("", "\n", "\r\n"),
      ([component, element, release, terminator], text, gap) => {
        const write = (value: string): string =>
          [...value]
            .map((c) => ([component, element, release, terminator].includes(c) ? `${release}${c}` : c))
            .join("");
        const segment = (...elements: string[][]): string =>
          elements.map((parts) => parts.map(write).join(component)).join(element) + terminator + gap;
        const file =
          `UNA${component}${element}.${release} ${terminator}${gap}` +
          segment(["UNB"], ["UNOC", "3"], ["990", "14"], ["991", "14"], ["260302", "0915"], [text]) +
          segment(["UNH"], ["1"], ["ORDERS", "D"]) +
          segment(["FTX"], [text, `UNZ${text}`]) +
          segment(["UNT"], ["2"], ["1"]) +
          segment(["UNZ"], ["1"], [text]);
        const message = readOne(edifact(), { body: file });
        assert.equal(message.id, text);
        assert.equal(message.producer, "990|14|991|14");
        assert.equal(message.type, "ORDERS");
        // A copy in the standard separators has the same identity.
        const standard = (value: string): string => value.replace(/[:+?']/g, "?$&");
        assert.equal(digest(readOne(edifact(), { body: interchange(standard(text)) })), digest(message));
      },
    ),
  );
});

test("parties differ by qualifier, and never run together", () => {
  const senders = ["990:14", "990:1", "990", "9901:4", "99|0:14", "990|14"];
  assert.equal(
    new Set(senders.map((sender) => digest(readOne(edifact(), { body: interchange("1", { sender }) })))).size,
    senders.length,
  );
});

test("references are texts", () => {
  const ids = ["42", "042", "00042", "42 "].map(
    (reference) => readOne(edifact(), { body: interchange(reference) }).id,
  );
  assert.deepEqual(ids, ["42", "042", "00042", "42 "]);
});

test("the period of a partner is part of the identity, for that partner only", () => {
  const format = edifact({ period: ({ sender }) => (sender.id === "990" ? "year" : "ever") });
  const [first, next] = ["260302", "270302"].map((date) =>
    readOne(format, { body: interchange("1").replace("260302", date) }),
  );
  assert.notEqual(digest(first!), digest(next!));
  const other = ["260302", "270302"].map((date) =>
    readOne(format, { body: interchange("1", { sender: "777:14" }).replace("260302", date) }),
  );
  assert.equal(digest(other[0]!), digest(other[1]!));
  assert.equal(
    refuseOne(format, { body: interchange("1").replace("260302", "soon") }).rejected.code,
    "malformed",
  );
  const failing = edifact({
    period: () => {
      throw new Error("no such partner");
    },
  });
  assert.equal(refuseOne(failing, { body: interchange("1") }).rejected.code, "malformed");
});

test("test interchanges are ignored, or taken apart from production's", () => {
  const body = interchange("1", { rest: "++++++1" });
  assert.match(ignoreOne(edifact(), { body }), /test/);
  assert.notEqual(
    digest(readOne(edifact({ test: "accept" }), { body })),
    digest(readOne(edifact(), { body: interchange("1") })),
  );
});

test("names are decoded by the interchange's own character set, the payload is not", () => {
  const bytes = (charset: string, sender: number[]): Buffer => {
    const [before, after] = interchange("1", { sender: "@:14", charset }).split("@");
    return Buffer.concat([Buffer.from(before!), Buffer.from(sender), Buffer.from(after!)]);
  };
  const sender = (charset: string, raw: number[]): string =>
    readOne(edifact(), { body: bytes(charset, raw) }).producer.split("|")[0]!;
  assert.equal(sender("UNOC:3", [0xe9]), "é");
  assert.equal(sender("UNOA:3", [0xe9]), "é");
  assert.equal(sender("UNOD:3", [0xb1]), "ą");
  assert.equal(sender("UNOK:3", [0xfe]), "ş");
  assert.equal(sender("UNOY:4", [0xc3, 0xa9]), "é");
  assert.equal(sender("XXXX:1", [0xe9]), "é");
  assert.equal(refuseOne(edifact(), { body: bytes("UNOY:4", [0xe9]) }).rejected.code, "malformed");
  assert.equal(edifactDecoder("UNOC")(Uint8Array.of(0x80, 0x9f)), "\u0080\u009f");
});

const broken: readonly (readonly [string, string])[] = [
  ["no UNZ", interchange("1").replace(/UNZ.*$/, "")],
  ["a cut segment", interchange("1").slice(0, -1)],
  ["a UNZ that counts wrong", interchange("1").replace("UNZ+1", "UNZ+2")],
  ["a UNZ that counts nothing", interchange("1").replace("UNZ+1", "UNZ+")],
  ["another reference in its UNZ", interchange("1").replace(/1'$/, "2'")],
  ["no sender", interchange("1", { sender: "" })],
  ["garbage before it", `garbage${interchange("1")}`],
  ["a UNB that never ends", "UNB+UNOC:3+"],
  ["a UNB of a megabyte", `UNB+UNOC:3+${"x".repeat(1e6)}'`],
  ["a UNA and nothing more", "UNA:+.? '"],
];

for (const [what, body] of broken) {
  test(`an interchange with ${what} is malformed, and every byte of it is kept`, () => {
    const rejected = refuseOne(edifact(), { body });
    assert.equal(rejected.rejected.code, "malformed");
    assert.equal(Buffer.from(rejected.bytes!).toString(), body);
  });
}

test("an interchange without a reference has no identity; a broken one harms no other of its file", () => {
  assert.equal(refuseOne(edifact(), { body: interchange("") }).rejected.code, "no-identity");
  const items = edifact().read({ body: `${interchange("1").replace(/UNZ.*$/, "")}\r\n${interchange("2")}` });
  assert.deepEqual(
    items.map(
      (item) =>
        item.kind === "message" &&
        ("rejected" in item.received ? item.received.rejected.code : item.received.id),
    ),
    ["malformed", "2"],
  );
  assert.match(ignoreOne(edifact(), { body: " \r\n" }), /without/);
  assert.match(ignoreOne(edifact(), { body: null }), /without/);
});

test("groups are counted instead of messages where there are groups", () => {
  const message = "UNH+1+ORDERS:D'UNT+2+1'";
  const body = interchange("1", { body: `UNG+ORDERS'${message}${message}UNE+2+1'` });
  assert.equal(readOne(edifact(), { body }).id, "1");
});

const isa = (changes: { control?: string; usage?: string; sender?: string } = {}): string => {
  const { control = "000000905", usage = "P", sender = "SENDER" } = changes;
  return `ISA*00*          *00*          *ZZ*${sender.padEnd(15)}*01*${"RECEIVER".padEnd(15)}*260302*0915*U*00401*${control}*0*${usage}*>~`;
};
const group = (control: string): string =>
  `GS*PO*S*R*20260302*0915*${control}*X*004010~ST*850*0001~SE*2*0001~GE*1*${control}~`;
const x12File = (groups: readonly string[], changes = {}): string =>
  `${isa(changes)}${groups.map(group).join("\n")}IEA*${groups.length}*${(changes as { control?: string }).control ?? "000000905"}~`;

test("X12: the interchange by ISA13, or each group by ISA13 and GS06, as texts", () => {
  const body = x12File(["1", "01"]);
  const whole = readOne(x12(), { body });
  assert.deepEqual([whole.producer, whole.id, whole.type], ["SENDER|ZZ|RECEIVER|01", "000000905", "PO"]);
  assert.equal(whole.text(), body);
  const groups = readAll(x12({ unit: "group" }), {
    body: `${body}\r\n${x12File(["1"], { control: "000000906" })}`,
  });
  assert.deepEqual(
    groups.map(({ id }) => id),
    ["000000905|1", "000000905|01", "000000906|1"],
  );
  assert.equal(groups[0]!.text(), group("1"));
  assert.equal(new Set(groups.map(digest)).size, 3);
});

test("X12: test interchanges apart, broken envelopes malformed and kept", () => {
  const test = x12File(["1"], { usage: "T" });
  assert.match(ignoreOne(x12(), { body: test }), /usage indicator/);
  assert.equal(readOne(x12({ test: "accept" }), { body: test }).producer, "SENDER|ZZ|RECEIVER|01|test");
  const good = x12File(["1"]);
  const wrong = [
    good.replace("IEA*1", "IEA*2"),
    good.replace(/905~$/, "906~"),
    good.replace("GE*1*1", "GE*1*2"),
    good.replace("GE*1*1~", ""),
    good.replace(/IEA.*$/, ""),
    good.slice(0, -1),
    good.slice(0, 50),
    `x${good}`,
  ];
  for (const body of wrong) {
    const rejected = refuseOne(x12(), { body });
    assert.equal(rejected.rejected.code, "malformed", body);
    assert.equal(Buffer.from(rejected.bytes!).toString(), body);
  }
});

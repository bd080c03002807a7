import assert from "node:assert/strict";
import { Readable } from "node:stream";
import test from "node:test";
import { isRejected, type Message, type RejectedMessage } from "../../../src/message/message.ts";
import { createLineReader, type LineIdentity } from "../../../src/sources/ndjson/read-line.ts";
import { ids, received } from "./harness.ts";

const shop = { idPath: "id", producer: "shop" };

test("a number is an id as it is written: neighbours above 2^53 stay two messages", async (t) => {
  const lines = ["9007199254740993", "9007199254740992", "1.0", "1", "1e2", "-0", '"1"'];
  const list = await received(t, {
    from: Readable.from([lines.map((id) => `{"id":${id}}\n`).join("")]),
    identity: shop,
  });
  assert.deepEqual(ids(list), ["9007199254740993", "9007199254740992", "1.0", "1", "1e2", "-0", "1"]);
});

test("paths are JSON pointers or names with dots, also through arrays and escapes", async (t) => {
  const line = '{"order":{"id":"o-1","a.b":{"~/":"deep"},"list":[{"id":7},8]},"id":"top"}\n';
  const table: readonly (readonly [string, string])[] = [
    ["id", "top"],
    ["/id", "top"],
    ["order.id", "o-1"],
    ["/order/id", "o-1"],
    ["/order/a.b/~0~1", "deep"],
    ["order.list.0.id", "7"],
    ["/order/list/1", "8"],
    ["order.list.2", "[no-identity]"],
    ["order.list.00", "[no-identity]"],
    ["order.list.length", "[no-identity]"],
    ["id.length", "[no-identity]"],
    ["__proto__", "[no-identity]"],
    ["order", "[invalid-identity]"],
  ];
  for (const [idPath, expected] of table) {
    const list = await received(t, { from: Readable.from([line]), identity: { idPath, producer: "shop" } });
    assert.deepEqual(ids(list), [expected], idPath);
  }
});

test("a path that is none is refused at construction, by the option's name", () => {
  for (const [format, field] of [
    [{ idPath: "", producer: "p" }, /idPath/],
    [{ idPath: "a..b", producer: "p" }, /idPath/],
    [{ idPath: "id", keyPath: "/a~2", producer: "p" }, /keyPath/],
    [{ idPath: "id", typePath: ".", producer: "p" }, /typePath/],
  ] satisfies [LineIdentity, RegExp][]) {
    assert.throws(
      () => createLineReader({ identity: format, tenant: undefined, fileName: "f", maxLineBytes: 10 }),
      (error: Error) => field.test(error.message) && (error as { code?: string }).code === "invalid-option",
    );
  }
});

test("a plain line is its own payload, byte for byte, with key and type beside it", async (t) => {
  const line = '  {"id":"1", "account":17 ,"kind":"paid","total":1.50}';
  const [message] = (await received(t, {
    from: Readable.from([`${line}\r\n`]),
    identity: { ...shop, keyPath: "account", typePath: "/kind" },
    tenant: "north",
  })) as Message[];
  assert.equal(Buffer.from(message!.bytes!).toString(), line);
  assert.deepEqual(
    [message!.key, message!.type, message!.tenant, message!.producer],
    ["17", "paid", "north", "shop"],
  );
});

test("a missing or null key is no key", async (t) => {
  const lines = '{"id":"1"}\n{"id":"2","account":null}\n';
  const list = (await received(t, {
    from: Readable.from([lines]),
    identity: { ...shop, keyPath: "account" },
  })) as Message[];
  assert.deepEqual(
    list.map(({ key }) => key),
    [undefined, undefined],
  );
});

test("what is no message is rejected with its bytes and its place, and harms no neighbour", async (t) => {
  const bad: readonly (readonly [string | Buffer, string])[] = [
    ["{", "malformed"],
    ["not json", "malformed"],
    [Buffer.from([0x7b, 0xff, 0xfe, 0x7d]), "malformed"],
    ["\u0000\u0000\u0000", "malformed"],
    ['{"id":"a","id":"b"}', "malformed"],
    ["[".repeat(2_000) + "]".repeat(2_000), "no-identity"],
    [`{"id":${"[".repeat(2_000)}${"]".repeat(2_000)}}`, "malformed"],
    ["{}", "no-identity"],
    ["17", "no-identity"],
    ["null", "no-identity"],
    ['{"id":null}', "no-identity"],
    ['{"id":""}', "no-identity"],
    ['{"id":true}', "invalid-identity"],
    ['{"id":{"a":1}}', "invalid-identity"],
    ['{"id":"a\\u0000b"}', "invalid-identity"],
    ['{"id":"\\ud800"}', "invalid-identity"],
    [`{"id":"${"i".repeat(1_025)}"}`, "identity-too-long"],
    ['{"id":"x","account":{}}', "malformed"],
  ];
  const good = '{"id":"good"}\n';
  const input = Buffer.concat(
    bad.flatMap(([line]) => [Buffer.from(line), Buffer.from("\n"), Buffer.from(good)]),
  );
  const list = await received(t, { from: Readable.from([input]), identity: { ...shop, keyPath: "account" } });
  assert.deepEqual(
    ids(list),
    bad.flatMap(([, code]) => [`[${code}]`, "good"]),
  );

  let offset = 0;
  for (const [i, [line]] of bad.entries()) {
    const rejected = list[2 * i] as RejectedMessage;
    assert.deepEqual(Buffer.from(rejected.bytes!), Buffer.from(line));
    assert.equal(rejected.headers["ndjson-position"], `stdin:${offset}:${Buffer.byteLength(line)}`);
    offset += Buffer.byteLength(line) + 1 + good.length;
  }
});

test("a line over the limit is rejected with a prefix, its place and its digest", async (t) => {
  const long = `{"id":"x","pad":"${"p".repeat(200_000)}"}`;
  const list = await received(t, {
    from: Readable.from([`{"id":"a"}\n${long}\n{"id":"b"}\n`]),
    maxLineBytes: 100_000,
  });
  assert.deepEqual(ids(list), ["a", "[too-large]", "b"]);
  const rejected = list[1] as RejectedMessage;
  assert.equal(Buffer.from(rejected.bytes!).toString(), long.slice(0, 65_536));
  assert.match(
    rejected.rejected.text,
    new RegExp(`stdin:11:${long.length} .* limit of 100000.*SHA-256 of the whole: [0-9a-f]{64}`),
  );
});

test("CloudEvents lines give their own source and id, and broken ones are rejected as whole lines", async (t) => {
  const event =
    '{"specversion":"1.0","type":"t","source":"/shop","id":"e-1","partitionkey":"k","data":{"n":1.0}}';
  const list = await received(t, {
    from: Readable.from([`\ufeff${event}\r\n{"id":"e-2"}\n`]),
    identity: "cloudevents",
    tenant: "north",
  });
  const [message, broken] = list;
  assert.ok(message !== undefined && !isRejected(message));
  assert.deepEqual(
    [message.tenant, message.producer, message.id, message.key],
    ["north", "/shop", "e-1", "k"],
  );
  assert.equal(message.text(), '{"n":1.0}');
  assert.ok(broken !== undefined && isRejected(broken));
  assert.equal(Buffer.from(broken.bytes!).toString(), '{"id":"e-2"}');
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { statementReader } from "./statements.ts";

const message = (type: string, ...texts: readonly string[]): Buffer => {
  const body = Buffer.from(`${texts.join("\0")}\0more`);
  const head = Buffer.alloc(5);
  head.write(type);
  head.writeUInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
};

test("statements are known by their text, and later by the name they were prepared under", () => {
  const read = statementReader();
  // The first message of a connection: a length and no type.
  assert.deepEqual(read(Buffer.from([0, 0, 0, 8, 4, 210, 22, 47])), []);
  assert.deepEqual(read(Buffer.concat([message("Q", "begin"), message("Q", "commit")])), ["begin", "commit"]);
  const parse = message("P", "kept_1", "select outbox_settle($1)");
  assert.deepEqual(read(Buffer.concat([parse, message("B", "", "kept_1"), message("S")])), [
    "select outbox_settle($1)",
  ]);
  assert.deepEqual(read(message("B", "", "kept_1")), ["select outbox_settle($1)"]);
  assert.deepEqual(read(message("B", "", "unknown")), [""]);
  assert.deepEqual(read(message("Q", "commit").subarray(0, 7)), []);
});

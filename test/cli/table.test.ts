import assert from "node:assert/strict";
import test from "node:test";
import { tableOf } from "../../src/cli/table.ts";

const head = ["id", "last failed", "error"];
const rows = [
  ["17", "2030-01-31T12:00:00.123Z", "Error: no account 17, and none that is like it"],
  ["18", "2030-01-31T12:00:01.456Z", "Error: no"],
];

test("a table that fits, or goes to a file, has its frame and everything in it", () => {
  const framed = tableOf(head, rows, undefined);
  assert.match(framed, /│ 17 │ 2030-01-31T12:00:00\.123Z │ Error: no account 17, and none that is like it │/);
  assert.equal(tableOf(head, rows, 200), framed);
});

test("a table that is too wide loses its frame, milliseconds and the end of its last column", () => {
  const lines = tableOf(head, rows, 45)
    .split("\n")
    .map((line) => line.trimEnd());
  assert.deepEqual(lines, [
    "id  last failed           error",
    "17  2030-01-31T12:00:00Z  Error: no account …",
    "18  2030-01-31T12:00:01Z  Error: no",
  ]);
});

test("one that is wider still is one record below the other, whole", () => {
  assert.equal(
    tableOf(head, rows.slice(1), 30),
    "id           18\nlast failed  2030-01-31T12:00:01Z\nerror        Error: no",
  );
});

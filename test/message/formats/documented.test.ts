import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { formats } from "../../../src/index.ts";

const text = readFileSync(new URL("../../../docs/identity.md", import.meta.url), "utf8");

test("docs/identity.md has every format in its table, with a wrong field and what it costs", () => {
  const rows = text
    .split("\n")
    .filter((line) => line.startsWith("| "))
    .map((line) => line.split("|").map((cell) => cell.trim()));
  for (const name of formats.names) {
    const row = rows.find((cells) => cells[2]?.startsWith(`\`${name}`));
    assert.ok(row !== undefined && row.slice(3, 6).every((cell) => cell.length > 3), name);
  }
});

test("the example of docs/identity.md with a partner's period compiles and reads", () => {
  const yearly = formats.edifact({
    period: ({ sender }) => (sender.id === "9900000000017" ? "year" : "ever"),
  });
  assert.ok(
    text.includes(
      'formats.edifact({ period: ({ sender }) => (sender.id === "9900000000017" ? "year" : "ever") })',
    ),
  );
  assert.equal(yearly.name, "edifact");
});

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { schemes } from "../../../src/sources/http/signature-schemes.ts";

const flat = (text: string): string => text.replace(/\s+/g, " ");
const document = readFileSync(join(import.meta.dirname, "../../../docs/http.md"), "utf8");
const tests = flat(
  ["frameworks.test.ts", "support.ts"]
    .map((name) => readFileSync(join(import.meta.dirname, name), "utf8"))
    .join("\n"),
);

test("the lines that docs/http.md gives for each server are those the tests run", () => {
  const lines = [...document.matchAll(/^\| .* \| `(.*)` \|$/gm)].map(([, line = ""]) => line);
  assert.equal(lines.length, 4);
  for (const line of lines) assert.ok(tests.includes(flat(line).replace(/;$/, "")), line);
});

test("docs/http.md names every scheme, and every code that a caller may be told", () => {
  for (const name of Object.keys(schemes)) assert.ok(document.includes(`\`${name}\``), name);
  for (const status of [400, 401, 405, 408, 409, 413, 415, 422, 500, 503]) {
    assert.ok(document.includes(String(status)), String(status));
  }
});

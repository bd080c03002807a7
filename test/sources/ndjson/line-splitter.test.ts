import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import test from "node:test";
import fc from "fast-check";
import { createLineSplitter, type Line } from "../../../src/sources/ndjson/line-splitter.ts";

function split(chunks: readonly Uint8Array[], maxLineBytes = 1_000, keptBytes = 4, start = 0): Line[] {
  const splitter = createLineSplitter({ start, maxLineBytes, keptBytes });
  const lines = chunks.flatMap((chunk) => splitter.push(chunk));
  const last = splitter.finish();
  return last === undefined ? lines : [...lines, last];
}

const texts = (lines: readonly Line[]): string[] => lines.map(({ bytes }) => bytes.toString());

test("lines end at LF or CRLF, blank ones are passed over, and the last one needs no ending", () => {
  const table: readonly (readonly [string, readonly string[]])[] = [
    ["", []],
    ["\n", []],
    ["a", ["a"]],
    ["a\nb\n", ["a", "b"]],
    ["a\r\nb\r\n", ["a", "b"]],
    ["a\r\nb\r", ["a", "b"]],
    ["\n\n  \t\r\na\n\n", ["a"]],
    ["a\rb\n", ["a\rb"]],
    ["\ufeffa\n\ufeffb\n", ["a", "\ufeffb"]],
    ["\ufeff", []],
    [" a \n", [" a "]],
  ];
  for (const [text, expected] of table)
    assert.deepEqual(texts(split([Buffer.from(text)])), expected, JSON.stringify(text));
});

test("a line of exactly the limit fits, one byte more does not, whatever its ending", () => {
  for (const ending of ["\n", "\r\n", ""]) {
    const [fits] = split([Buffer.from(`${"x".repeat(8)}${ending}`)], 8);
    assert.equal(fits!.tooLong, undefined, JSON.stringify(ending));
    assert.equal(fits!.length, 8);
    const [over] = split([Buffer.from(`${"x".repeat(9)}${ending}`)], 8);
    assert.equal(over!.bytes.toString(), "xxxx", JSON.stringify(ending));
    assert.notEqual(over!.tooLong, undefined);
  }
});

test("of a line that is too long the place, the length, a digest and a prefix are kept, and the next line is whole", () => {
  const long = Buffer.from("0123456789".repeat(1_000));
  const chunks = [
    Buffer.from("ab\n"),
    ...Array.from({ length: 10 }, (_, i) => long.subarray(i * 1_000, (i + 1) * 1_000)),
    Buffer.from("\nc\n"),
  ];
  const [first, over, last] = split(chunks, 100);
  assert.equal(first!.bytes.toString(), "ab");
  assert.deepEqual([over!.start, over!.end, over!.length], [3, 3 + 10_000 + 1, 10_000]);
  assert.equal(over!.bytes.toString(), "0123");
  assert.equal(over!.tooLong, createHash("sha256").update(long).digest("hex"));
  assert.equal(last!.bytes.toString(), "c");
});

test("however the bytes are cut into chunks, the lines, their places and their digests are the same", () => {
  const piece = fc.constantFrom(
    "\n",
    "\r\n",
    "\r",
    " ",
    "a",
    "bcd",
    "é",
    "\ufeff",
    "x".repeat(9),
    "\u0000",
    "{}",
  );
  fc.assert(
    fc.property(
      fc.array(piece, { maxLength: 60 }),
      fc.array(fc.nat(200), { maxLength: 12 }),
      (pieces, cuts) => {
        const all = Buffer.from(pieces.join(""));
        const places = [0, ...cuts.map((cut) => Math.min(cut, all.length)).sort((a, b) => a - b), all.length];
        const chunks = places.slice(1).map((place, i) => all.subarray(places[i], place));
        const lines = split(chunks, 8);
        assert.deepEqual(lines, split([all], 8));
        // Against the bytes themselves: each line stands where it says, and what lies between lines is blank.
        let end = 0;
        for (const line of lines) {
          assert.match(all.subarray(end, line.start).toString(), /^\ufeff?[\s]*$/);
          const raw = all.subarray(line.start, line.end).toString();
          const bare = raw.replace(/\r?\n$|\r$/, "");
          const text = line.start === 0 ? bare.replace(/^\ufeff/, "") : bare;
          if (line.tooLong === undefined) assert.equal(line.bytes.toString(), text);
          else assert.ok(Buffer.byteLength(text) > 8);
          end = line.end;
        }
        assert.match(all.subarray(end).toString(), /^\ufeff?[ \r\n]*$/);
      },
    ),
    { numRuns: 500 },
  );
});

test("a line is a copy: it does not keep the chunk it came from", () => {
  const chunk = Buffer.from(`${"y".repeat(5_000)}\n`);
  const [line] = split([chunk], 10_000);
  chunk.fill(0);
  assert.equal(line!.bytes.toString(), "y".repeat(5_000));
});

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { LosslessNumber, parse as parseLossless } from "lossless-json";
import { canonicalJson } from "../../src/message/canonical-json.ts";
import { canonicalNumber } from "../../src/message/canonical-number.ts";
import { pointerTree } from "../../src/message/json-pointer.ts";
import { maxJsonDepth } from "../../src/message/limits.ts";

const canonical = (text: string, except?: readonly string[]): string => {
  const result = canonicalJson(text, except === undefined ? undefined : pointerTree(except, "except"));
  assert.ok(result.ok, result.ok ? "" : `${result.reason} at ${result.at}: ${text}`);
  return result.text;
};

const refusal = (text: string): string => {
  const result = canonicalJson(text);
  assert.ok(!result.ok, `accepted ${text}`);
  return result.reason;
};

/** The exact value of a number token as mantissa and power of ten, by another way than the code under test. */
function exactValue(token: string): string {
  const [mantissa = "", power = "0"] = token.toLowerCase().split("e");
  const [whole = "", fraction = ""] = mantissa.split(".");
  let value = BigInt(whole.replace("-", "") + fraction);
  let exponent = BigInt(power) - BigInt(fraction.length);
  if (value === 0n) return "0";
  while (value % 10n === 0n) {
    value /= 10n;
    exponent += 1n;
  }
  return `${token.startsWith("-") ? "-" : ""}${value}e${exponent}`;
}

/** What a text means, as a text: equal if and only if two documents mean the same. */
function meaning(value: unknown): string {
  if (value instanceof LosslessNumber) return exactValue(value.value);
  if (Array.isArray(value)) return `[${value.map(meaning).join()}]`;
  if (typeof value === "object" && value !== null) {
    const keys = Object.keys(value).sort();
    return `{${keys.map((key) => `${JSON.stringify(key)}:${meaning((value as Record<string, unknown>)[key])}`).join()}}`;
  }
  return JSON.stringify(value);
}

// Canonical JSON knows one zero, also where a double can be no nearer to the number than -0.
const parseOneZero = (text: string): unknown =>
  JSON.parse(text, (_key, part: unknown) => (part === 0 ? 0 : part));

const digits = (max: number): fc.Arbitrary<string> =>
  fc.array(fc.constantFrom(..."0012345679"), { minLength: 1, maxLength: max }).map((list) => list.join(""));

const numberToken: fc.Arbitrary<string> = fc
  .tuple(
    fc.constantFrom("", "-"),
    fc.oneof(
      fc.constant("0"),
      digits(25).map((text) => text.replace(/^0+(?=.)/, "")),
    ),
    fc.option(digits(25)),
    fc.option(fc.tuple(fc.constantFrom("e", "E"), fc.constantFrom("", "+", "-"), digits(3))),
  )
  .map(
    ([sign, whole, fraction, power]) =>
      `${sign}${whole}${fraction === null ? "" : `.${fraction}`}${power?.join("") ?? ""}`,
  );

const space = fc.constantFrom("", "", "", " ", "\n", "\t\r ");

// Wild strings, and a few names that have caused trouble, often enough to meet each other.
const string = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.constantFrom(
    "a",
    "b",
    "10",
    "9",
    "__proto__",
    "constructor",
    "é",
    "e\u0301",
    "\u0000",
    "\ue000",
    "\u{10000}",
    "\u2028",
    "",
  ),
);

/** The same string written in one of its many forms. */
const stringToken = fc.tuple(string, fc.nat()).map(([text, seed]) => {
  let state = seed;
  const units = [...Array(text.length).keys()].map((i) => {
    state = (state * 1103515245 + 12345) % 2147483648;
    const unit = text[i]!;
    const hex = text.charCodeAt(i).toString(16).padStart(4, "0");
    const surrogate = /[\ud800-\udfff]/.test(unit);
    if (state % 3 === 0 && !surrogate) return `\\u${state % 2 === 0 ? hex : hex.toUpperCase()}`;
    return surrogate ? unit : unit === "/" && state % 2 === 0 ? "\\/" : JSON.stringify(unit).slice(1, -1);
  });
  return `"${units.join("")}"`;
});

const { document } = fc.letrec<{ document: string; array: string; object: string }>((tie) => ({
  document: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.constantFrom("true", "false", "null", "[]", "{}", "[ ]", "{\n}"),
    numberToken,
    stringToken,
    tie("array"),
    tie("object"),
  ),
  array: fc
    .array(fc.tuple(space, tie("document"), space), { maxLength: 4 })
    .map((items) => `[${items.map((item) => item.join("")).join()}]`),
  object: fc
    .uniqueArray(fc.tuple(space, stringToken, space, tie("document"), space), {
      maxLength: 4,
      selector: (member) => JSON.parse(member[1]) as string,
    })
    .map((members) => `{${members.map(([a, key, b, value, c]) => `${a}${key}${b}:${value}${c}`).join()}}`),
}));

test("two documents have one canonical text exactly if they mean the same to a lossless parser", () => {
  fc.assert(
    fc.property(fc.array(document, { minLength: 2, maxLength: 12 }), (texts) => {
      const known = new Map<string, string>();
      const reversed = new Map<string, string>();
      for (const text of texts) {
        const ours = canonical(text);
        const theirs = meaning(parseLossless(text));
        assert.equal(known.get(ours) ?? theirs, theirs, `one text for two meanings: ${ours}`);
        assert.equal(reversed.get(theirs) ?? ours, ours, `two texts for one meaning: ${theirs}`);
        known.set(ours, theirs);
        reversed.set(theirs, ours);
      }
    }),
    { numRuns: 3000 },
  );
});

test("a canonical text means what the document meant, and is its own canonical text", () => {
  fc.assert(
    fc.property(document, (text) => {
      const result = canonical(text);
      assert.equal(meaning(parseLossless(result)), meaning(parseLossless(text)));
      assert.equal(canonical(result), result);
    }),
    { numRuns: 2000 },
  );
});

test("documents that doubles can hold come out as RFC 8785 has them", () => {
  const rfc8785 = (value: unknown): string => {
    if (Array.isArray(value)) return `[${value.map(rfc8785).join()}]`;
    if (typeof value !== "object" || value === null) return JSON.stringify(value);
    const members = Object.keys(value).sort();
    return `{${members.map((key) => `${JSON.stringify(key)}:${rfc8785((value as Record<string, unknown>)[key])}`).join()}}`;
  };
  fc.assert(
    fc.property(fc.json({ stringUnit: "grapheme" }), (text) => {
      assert.equal(canonical(text), rfc8785(JSON.parse(text)));
    }),
    { numRuns: 2000 },
  );
  // The sample of RFC 8785, section 3.2.2, in its own words.
  assert.equal(
    canonical(
      '{"numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001], "string": "\\u20ac$\\u000F\\u000aA\'\\u0042\\u0022\\u005c\\\\\\"\\/", "literals": [null, true, false]}',
    ),
    '{"literals":[null,true,false],"numbers":[333333333.33333329,1e+30,4.5,0.002,1e-27],"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
  );
});

test("any broken text is refused if and only if JSON.parse refuses it, or two readers might differ on it", () => {
  const broken = fc
    .tuple(
      document,
      fc.array(
        fc.tuple(
          fc.nat(),
          fc.constantFrom(
            "",
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            '"',
            "\\",
            "0",
            "-",
            ".",
            "e",
            "+",
            "\u0001",
            "\ud800",
            "\\ud800",
            "tru",
            " ",
          ),
        ),
        { minLength: 1, maxLength: 4 },
      ),
    )
    .map(([text, edits]) =>
      edits.reduce((current, [place, insert]) => {
        const at = place % (current.length + 1);
        return current.slice(0, at) + insert + current.slice(insert === "" ? at + 1 : at);
      }, text),
    );
  fc.assert(
    fc.property(broken, (text) => {
      const result = canonicalJson(text);
      let value: unknown;
      try {
        value = parseOneZero(text);
      } catch {
        assert.ok(!result.ok, `accepted ${text}`);
        return;
      }
      if (result.ok) assert.deepEqual(parseOneZero(result.text), value);
      else assert.match(result.reason, /twice|surrogate|exponent/);
    }),
    { numRuns: 5000 },
  );
});

test("numbers of one exact value have one text, however they are written", () => {
  const same = fc.tuple(
    fc.constantFrom("", "-"),
    fc.bigInt({ min: 0n, max: 10n ** 30n }),
    fc.integer({ min: -40, max: 40 }),
    fc.nat(10),
    fc.integer({ min: -400, max: 400 }),
  );
  fc.assert(
    fc.property(same, ([sign, mantissa, power, zeros, shift]) => {
      const plain = `${sign}${mantissa}e${power}`;
      const padded = `${sign}${mantissa}${"0".repeat(zeros)}E${power - zeros}`;
      const pointed = `${sign}${mantissa}.${"0".repeat(zeros)}e+${power}`.replace("+-", "-");
      const text = String(mantissa);
      const fraction = `${sign}0.${"0".repeat(Math.abs(shift) % 30)}${text}e${power + text.length + (Math.abs(shift) % 30)}`;
      for (const other of [padded, pointed, fraction])
        assert.equal(canonicalNumber(other), canonicalNumber(plain), other);
    }),
  );
});

const numbers: readonly (readonly [string, string])[] = [
  ["0", "0"],
  ["-0", "0"],
  ["-0.000e-99999999999999999999", "0"],
  ["1.0", "1"],
  ["1e2", "100"],
  ["100", "100"],
  ["9007199254740993", "9007199254740993"],
  ["0.1000000000000000055", "0.1000000000000000055"],
  ["1e400", "1e+400"],
  ["1E-0400", "1e-400"],
  ["10e399", "1e+400"],
  ["123456789012345678901", "123456789012345678901"],
  ["1234567890123456789012", "1.234567890123456789012e+21"],
  ["1000000000000000000000", "1e+21"],
  ["100000000000000000000", "100000000000000000000"],
  ["0.000001", "0.000001"],
  ["0.0000001", "1e-7"],
  ["-12.50", "-12.5"],
  ["1e999999999999999", "1e+999999999999999"],
];

for (const [token, expected] of numbers) {
  test(`the number ${token} is written ${expected}`, () => {
    assert.equal(canonical(token), expected);
    assert.equal(canonicalNumber(token), expected);
  });
}

test("an exponent of more than 15 digits is refused, at once", () => {
  assert.match(refusal("1e1000000000000000"), /exponent/);
  assert.match(refusal(`[1e-${"9".repeat(1_000_000)}]`), /exponent/);
});

test("duplicate keys are refused, in whatever form they are written", () => {
  for (const text of [
    '{"a":1,"a":1}',
    '{"a":1,"b":2,"a":1}',
    '{"a":1,"\\u0061":2}',
    '[{"__proto__":1,"__proto__":2}]',
  ]) {
    assert.match(refusal(text), /twice/);
  }
  const left = canonicalJson('{"a":1,"a":2,"b":3}', pointerTree(["/a"], "except"));
  assert.ok(!left.ok && /twice/.test(left.reason));
});

test("objects of many keys are sorted like small ones, and a key that is there twice is found in them", () => {
  const keys = fc.uniqueArray(string, { minLength: 20, maxLength: 60, size: "max" });
  fc.assert(
    fc.property(keys, fc.nat(), (names, seed) => {
      const members = names
        .map((name, i) => `${JSON.stringify(name)}:${i}`)
        .filter((text) => !text.includes("\\ud"));
      const turn = seed % members.length;
      const turned = [...members.slice(turn), ...members.slice(0, turn)].reverse();
      const sorted = canonical(`{${members.join()}}`);
      assert.equal(canonical(`{${turned.join()}}`), sorted);
      const order = [...sorted.matchAll(/"((?:[^"\\]|\\.)*)":/g)].map(
        (match) => JSON.parse(`"${match[1]}"`) as string,
      );
      assert.deepEqual(order, [...order].sort());
      assert.equal(order.length, members.length);
      assert.match(refusal(`{${[...turned, turned[seed % turned.length]].join()}}`), /twice/);
    }),
    { numRuns: 300 },
  );
});

test("a lone surrogate is refused, escaped or not, and in a key", () => {
  for (const text of ['"\\ud800"', '"\\udc00\\ud800"', '{"\\ud800":1}', '"\ud800"'])
    assert.match(refusal(text), /surrogate/);
});

test("one leading byte order mark is left out and reported, a second one refused", () => {
  assert.deepEqual(canonicalJson('\ufeff{"a":1}'), { ok: true, text: '{"a":1}', byteOrderMark: true });
  assert.deepEqual(canonicalJson('{"a":1}'), { ok: true, text: '{"a":1}', byteOrderMark: false });
  refusal("\ufeff\ufeff1");
});

test("nesting is taken up to the limit and refused above it, without a deep stack", () => {
  const nested = (depth: number): string => `${"[".repeat(depth)}${"]".repeat(depth)}`;
  assert.equal(canonical(nested(maxJsonDepth)), nested(maxJsonDepth));
  assert.match(refusal(nested(maxJsonDepth + 1)), /nesting/);
  assert.match(refusal('{"a":['.repeat(2_000_000)), /nesting/);
});

test("left-out parts do not show: members at any depth, items by their index, escaped names", () => {
  assert.equal(canonical('{"b":1,"a":{"x":1,"y":2}}', ["/a/x"]), '{"a":{"y":2},"b":1}');
  assert.equal(canonical('{"a":{"x":1}}', ["/a"]), "{}");
  assert.equal(canonical('[1,{"t":2,"u":3},4]', ["/0", "/1/t"]), '[{"u":3},4]');
  assert.equal(canonical('{"a/b":1,"c~d":2,"":3,"e":4}', ["/a~1b", "/c~0d", "/"]), '{"e":4}');
  assert.equal(canonical('{"__proto__":1,"e":4}', ["/__proto__"]), '{"e":4}');
  assert.equal(canonical('{"0":1,"-":2}', ["/0", "/-"]), "{}");
  assert.equal(canonical("[1,2]", ["/-", "/01"]), "[1,2]");
  assert.equal(canonical('{"constructor":1,"toString":2}', ["/x"]), '{"constructor":1,"toString":2}');
});

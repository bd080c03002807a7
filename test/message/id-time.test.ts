import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { idTimeReader, type IdTime } from "../../src/message/id-time.ts";

const twitter: IdTime = { snowflake: { epochMs: 1_288_834_974_657 } };

// The examples of the formats' own descriptions.
for (const [rule, id, at] of [
  ["uuidv7", "017F22E2-79B0-7CC3-98C4-DC0C0C07398F", "2022-02-22T19:22:22.000Z"],
  ["ulid", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "2016-07-30T23:54:10.259Z"],
  ["ulid", "01arz3ndektsv4rrffq69g5fav", "2016-07-30T23:54:10.259Z"],
  ["ulid", "7ZZZZZZZZZZZZZZZZZZZZZZZZZ", "+010889-08-02T05:31:50.655Z"],
  ["ksuid", "0ujtsYcgvSTl8PAuAdqWYSMnLOv", "2017-10-10T04:00:47.000Z"],
  ["ksuid", "aWgEPTl1tmebfsQzFP4bxwgy80V", "2150-06-19T23:21:35.000Z"],
  ["objectid", "507f1f77bcf86cd799439011", "2012-10-17T21:13:27.000Z"],
  [twitter, "1541815603606036480", "2022-06-28T16:07:40.105Z"],
  [{ snowflake: { epochMs: 1_420_070_400_000 } }, "175928847299117063", "2016-04-30T11:18:25.796Z"],
] as const satisfies readonly (readonly [IdTime, string, string])[]) {
  test(`${JSON.stringify(rule)}: ${id} was made at ${at}`, () => {
    const time = idTimeReader(rule)(id);
    assert.equal(time === undefined ? undefined : new Date(time).toISOString(), at);
  });
}

for (const [rule, ids] of [
  ["uuidv7", ["017f22e2-79b0-4cc3-98c4-dc0c0c07398f", "017f22e2-79b0-7cc3-18c4-dc0c0c07398f"]],
  ["uuidv7", ["017f22e279b07cc398c4dc0c0c07398f", "{017f22e2-79b0-7cc3-98c4-dc0c0c07398f}"]],
  ["ulid", ["8ZZZZZZZZZZZZZZZZZZZZZZZZZ", "01ARZ3NDEKTSV4RRFFQ69G5FAU", "01ARZ3NDEKTSV4RRFFQ69G5FA"]],
  ["ksuid", ["aWgEPTl1tmebfsQzFP4bxwgy80W", "zzzzzzzzzzzzzzzzzzzzzzzzzzz", "0ujtsYcgvSTl8PAuAdqWYSMnLO"]],
  ["objectid", ["507f1f77bcf86cd79943901", "507f1f77bcf86cd79943901g", "507f1f77bcf86cd799439011\n"]],
  [twitter, ["9223372036854775808", "01", "0", "-1", "1e3", "٣"]],
] as const satisfies readonly (readonly [IdTime, readonly string[]])[]) {
  test(`${JSON.stringify(rule)}: no time in ${ids.join(" ")}`, () => {
    for (const id of ids) assert.equal(idTimeReader(rule)(id), undefined, id);
  });
}

test("whatever an id holds, it has a whole number of milliseconds since 1970 or none", () => {
  const rules: readonly IdTime[] = ["uuidv7", "ulid", "ksuid", "objectid", twitter];
  const digits = fc.stringMatching(/^[0-9A-Za-z-]{1,36}$/);
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: "binary" }), digits), (id) => {
      for (const rule of rules) {
        const time = idTimeReader(rule)(id);
        assert.ok(time === undefined || (Number.isSafeInteger(time) && time >= 0), `${id}: ${time}`);
      }
    }),
  );
});

test("what is no rule is refused by name and value", () => {
  for (const rule of ["uuid", "toString", null, {}, { snowflake: {} }, { snowflake: { epochMs: -1 } }, 7]) {
    assert.throws(() => idTimeReader(rule as IdTime), {
      code: "invalid-option",
      message: /^idTime must be uuidv7, /,
    });
  }
});

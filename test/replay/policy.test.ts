import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { migrationConsumer, operationId, projection, replayTarget } from "../../src/replay/policy.ts";
import { identityDigest } from "../../src/message/identity.ts";
import { InboxError } from "../../src/errors.ts";

const code = (expected: string) => (error: unknown) => error instanceof InboxError && error.code === expected;

test("a replay without a policy is refused, whatever comes in its place", () => {
  for (const policy of [undefined, null, {}, { kind: "force" }, "rebuild", { kind: null }]) {
    assert.throws(() => replayTarget(policy as never), code("replay-refused"), JSON.stringify(policy));
  }
});

test("under the original's own name nothing is replayed", () => {
  assert.throws(() => replayTarget({ kind: "rebuild", of: "a", consumer: "a" }), code("replay-refused"));
  assert.throws(
    () => replayTarget({ kind: "projection", name: "b", version: 3, of: "b@3" }),
    code("replay-refused"),
  );
});

test("a projection takes over from the version before, unless it is the first", () => {
  assert.equal(replayTarget({ kind: "projection", name: "b", version: 3 }).of, "b@2");
  assert.equal(replayTarget({ kind: "projection", name: "b", version: 1 }).of, undefined);
  assert.equal(replayTarget({ kind: "projection", name: "b", version: 1, of: "old" }).of, "old");
});

test("effects are refused unless the policy says otherwise, and only a correction may send them", () => {
  assert.equal(replayTarget({ kind: "rebuild", of: "a", consumer: "b" }).effects, "refuse");
  assert.equal(
    replayTarget({ kind: "compensate", of: "a", migration: "m", effects: "send" }).effects,
    "send",
  );
  for (const policy of [
    { kind: "rebuild", of: "a", consumer: "b", effects: "send" },
    { kind: "projection", name: "b", version: 3, effects: "send" },
    { kind: "compensate", of: "a", migration: "m", effects: "maybe" },
  ]) {
    assert.throws(() => replayTarget(policy as never), code("invalid-option"));
  }
});

test("names that are none are refused", () => {
  const wrong: (() => unknown)[] = [
    () => projection("", 1),
    () => projection("a", 0),
    () => projection("a", 1.5),
    () => projection("a\0", 1),
    () => projection("a".repeat(127), 1),
    () => migrationConsumer("a", "b#c"),
    () => migrationConsumer("a", ""),
    () => migrationConsumer("a".repeat(100), "b".repeat(100)),
    () => replayTarget({ kind: "compensate", of: "a", migration: "m", appliedBy: [] }),
    () => replayTarget({ kind: "rebuild", of: "a", consumer: 7 as never }),
  ];
  for (const call of wrong) assert.throws(call, code("invalid-option"), String(call));
});

test("no two corrections have one name, and no two versions", () => {
  const name = fc.string({ minLength: 1, maxLength: 8, unit: fc.constantFrom("a", "#", "@", "1") });
  const migration = fc.string({ minLength: 1, maxLength: 8, unit: fc.constantFrom("a", "@", "1") });
  fc.assert(
    fc.property(name, migration, name, migration, (of, one, other, two) => {
      const same = of === other && one === two;
      assert.equal(migrationConsumer(of, one) === migrationConsumer(other, two), same);
    }),
  );
  fc.assert(
    fc.property(
      name,
      fc.integer({ min: 1, max: 99 }),
      name,
      fc.integer({ min: 1, max: 99 }),
      (a, v, b, w) => {
        assert.equal(projection(a, v) === projection(b, w), a === b && v === w);
      },
    ),
  );
});

test("an operation's id follows from original, migration and message, and is the ledger's key", () => {
  const message = { tenant: "", producer: "shop", id: "p-1" };
  const id = operationId({ of: "accounting", migration: "fix" }, message);
  assert.equal(id, identityDigest("accounting#fix", message));
  assert.notEqual(id, identityDigest("accounting", message));
  assert.notEqual(id, operationId({ of: "accounting", migration: "fix-2" }, message));
  assert.notEqual(id, operationId({ of: "accounting", migration: "fix" }, { ...message, id: "p-2" }));
});

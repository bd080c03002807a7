import assert from "node:assert/strict";
import { test } from "node:test";
import type { Database } from "./database.ts";
import { explore, type Explored, type Process } from "./explore.ts";
import { claim, doubled, emptyDatabase, forget, rotate, type Part, type Without } from "./generations.ts";

type Isolation = "read committed" | "repeatable read";

const isolations: readonly Isolation[] = ["read committed", "repeatable read"];

/** Copies of one message at these levels, while generations are opened and forgotten. */
function run(
  copies: readonly Isolation[],
  rotations: number,
  forgets: number,
  without: Without = new Set(),
): Explored {
  const processes: Process<Database>[] = [
    ...copies.map((isolation, i) => claim(`claim${i + 1}`, isolation, without)),
    ...Array.from({ length: rotations }, (_, i) => rotate(`rotate${i + 1}`, 3, without)),
    ...Array.from({ length: forgets }, (_, i) => forget(`forget${i + 1}`, without)),
  ];
  return explore(emptyDatabase(processes), processes, doubled);
}

const pairs = isolations.flatMap((a) => isolations.map((b) => [a, b] as const));

for (const copies of pairs) {
  test(`${copies.join(" beside ")}: no interleaving with two rotations and one forgetting applies a message twice`, () => {
    const { faults, stuck, states, ends } = run(copies, 2, 1);
    assert.deepEqual([faults, stuck], [[], []]);
    assert.ok(states > 2_000 && ends > 50, `${states} states, ${ends} ends: too few to prove anything`);
  });
}

test("three copies across a rotation and a forgetting: one is applied at most", () => {
  const { faults, stuck } = run(["read committed", "repeatable read", "read committed"], 1, 1);
  assert.deepEqual([faults, stuck], [[], []]);
});

test("two forgettings of two generations: what the first left for late stays late", () => {
  const { faults, stuck } = run(["read committed", "read committed"], 2, 2);
  assert.deepEqual([faults, stuck], [[], []]);
});

for (const [part, copies] of [
  ["guard", ["read committed", "read committed"]],
  ["row lock", ["read committed", "repeatable read"]],
  ["older", ["read committed", "read committed"]],
  ["late", ["read committed", "read committed"]],
  ["barrier", ["read committed", "read committed"]],
  ["forget barrier", ["read committed", "repeatable read"]],
] as const satisfies readonly (readonly [Part, readonly Isolation[]])[]) {
  test(`the protocol needs its ${part}: without it an interleaving applies a message twice`, () => {
    const { faults } = run(copies, 1, 1, new Set([part]));
    assert.ok(faults.length > 0, `leaving out the ${part} does no harm: then it is no part of the proof`);
  });
}

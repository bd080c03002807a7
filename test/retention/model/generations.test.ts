import assert from "node:assert/strict";
import { test } from "node:test";
import type { Database } from "./database.ts";
import { explore, type Explored, type Process } from "./explore.ts";
import {
  advance,
  claim,
  doubled,
  emptyDatabase,
  forget,
  noteReach,
  rotate,
  type Isolation,
  type Part,
  type Without,
} from "./generations.ts";

const isolations: readonly Isolation[] = ["read committed", "repeatable read"];

/** Copies of one message at these levels, beside rotations, a horizon that moves, and batches that forget. */
function run(
  copies: readonly Isolation[],
  {
    rotations = 0,
    batches = 0,
    notes = 0,
  }: { readonly rotations?: number; readonly batches?: number; readonly notes?: number },
  without: Without = new Set(),
): Explored {
  const processes: Process<Database>[] = [
    ...copies.map((isolation, i) => claim(`claim${i + 1}`, isolation, without)),
    ...Array.from({ length: rotations }, (_, i) => rotate(`rotate${i + 1}`, without)),
    ...Array.from({ length: notes }, (_, i) => noteReach(`note${i + 1}`, without)),
    ...(batches > 0 ? [advance("advance", without)] : []),
    ...Array.from({ length: batches }, (_, i) => forget(`forget${i + 1}`, without)),
  ];
  return explore(emptyDatabase(processes), processes, doubled);
}

const pairs = isolations.flatMap((a) => isolations.map((b) => [a, b] as const));

for (const copies of pairs) {
  test(`${copies.join(" beside ")}: no interleaving with two rotations applies a message twice`, () => {
    const { faults, stuck, states, ends } = run(copies, { rotations: 2 });
    assert.deepEqual([faults, stuck], [[], []]);
    assert.ok(states > 2_000 && ends > 20, `${states} states, ${ends} ends: too few to prove anything`);
  });

  test(`${copies.join(" beside ")}: none with a horizon that moves and batches behind it does`, () => {
    const { faults, stuck, states } = run(copies, { batches: 2 });
    assert.deepEqual([faults, stuck], [[], []]);
    assert.ok(states > 2_000, `${states} states: too few to prove anything`);
  });

  test(`${copies.join(" beside ")}: none where the closed generation's reach is noted meanwhile does`, (t) => {
    const { faults, stuck, states } = run(copies, { rotations: 2, notes: 1 });
    assert.deepEqual([faults, stuck], [[], []]);
    t.diagnostic(`${states} states`);
    assert.ok(states > 10_000, `${states} states: too few to prove anything`);
  });

  test(`${copies.join(" beside ")}: none with a rotation and a batch beside each other does`, () => {
    const { faults, stuck } = run(copies, { rotations: 1, batches: 1 });
    assert.deepEqual([faults, stuck], [[], []]);
  });
}

for (const [part, copies, beside] of [
  ["closed", ["read committed", "read committed"], { rotations: 1 }],
  ["closed first", ["read committed", "read committed"], { rotations: 2 }],
  ["horizon", ["read committed", "read committed"], { rotations: 2 }],
  ["second look", ["read committed", "read committed"], { rotations: 1 }],
  ["second look", ["read committed", "read committed"], { batches: 1 }],
  ["row lock", ["read committed", "repeatable read"], { rotations: 2 }],
  ["row lock", ["read committed", "repeatable read"], { batches: 1 }],
  ["barrier", ["read committed", "read committed"], { rotations: 1 }],
  ["rotation's mark", ["read committed", "read committed"], { rotations: 1 }],
  ["batch's mark", ["read committed", "read committed"], { batches: 1 }],
  ["reach's number", ["read committed", "read committed"], { rotations: 2, notes: 1 }],
  ["reach's lock", ["read committed", "read committed"], { rotations: 1, notes: 1 }],
  ["fresh mark", ["read committed", "read committed"], { rotations: 1, batches: 1 }],
] as const satisfies readonly (readonly [Part, readonly Isolation[], object])[]) {
  test(`the protocol needs its ${part} beside ${Object.keys(beside).join()}: without it a message is applied twice`, () => {
    const { faults } = run(copies, beside, new Set<Part>([part]));
    assert.ok(faults.length > 0, `leaving out the ${part} does no harm: then it is no part of the proof`);
  });
}

import assert from "node:assert/strict";
import { createInbox, postgres } from "../../src/index.ts";
import type { Body, Plan } from "./plan.ts";
import type { CrashTest } from "./support.ts";

/** Long enough for a busy machine to renew it. */
export const run = { workerLeaseMs: 1_000 };

/** Stores messages as a receiver would, from this process. */
export async function accept(
  { pool, schema }: CrashTest,
  bodies: readonly (Body & { id: string })[],
): Promise<void> {
  const inbox = createInbox({ store: postgres(pool, { schema }), consumer: "accounting" });
  const answers = await inbox.accept(
    bodies.map((body) => ({ ...body, producer: "payments", payload: JSON.stringify(body) })),
  );
  for (const { outcome } of answers) assert.equal(outcome, "stored");
}

/** The plan of a process that works without a broker. */
export const worker = (more: Partial<Plan> = {}): Partial<Plan> => ({ mode: "work", run, ...more });
/** For `until`. */
export const nothingPending = "not exists (select from pending)";

/** Effects of each key, in the order they were committed to. */
export async function effectsByKey(
  { pool }: CrashTest,
  bodies: readonly Body[],
): Promise<Record<string, string[]>> {
  const { rows } = await pool.query<{ id: string }>("select message_id as id from effect order by n");
  const keyOf = new Map(bodies.map(({ id, key }) => [id, key ?? ""]));
  const byKey: Record<string, string[]> = {};
  for (const { id } of rows) (byKey[keyOf.get(id) ?? ""] ??= []).push(id);
  return byKey;
}

/** `count` messages over `keys` keys, in turn, of the amounts 1, 2, 3, … */
export const bodiesOf = (count: number, keys: number) =>
  Array.from({ length: count }, (_, i) => ({ id: `m${i}`, key: `k${i % keys}`, amount: i + 1 }));

/** The ids of each key, in order. */
export const inOrder = (bodies: readonly (Body & { id: string })[]): Record<string, string[]> => {
  const byKey: Record<string, string[]> = {};
  for (const { id, key } of bodies) (byKey[key ?? ""] ??= []).push(id);
  return byKey;
};

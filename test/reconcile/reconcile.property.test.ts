import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { computeFingerprint } from "../../src/message/fingerprint.ts";
import type { SentMessage, SentSource } from "../../src/reconcile/sent.ts";
import { ledgerCase } from "./ledger-case.ts";

interface Seed {
  readonly id: string;
  /** Minutes after an origin hours ago; undefined: on that side it is not. */
  readonly sentAt: number | undefined;
  readonly appliedAt: number | undefined;
  readonly changed: boolean;
}

const origin = Math.floor(Date.now() / 60_000) * 60_000 - 10 * 3_600_000;
const at = (minutes: number): number => origin + minutes * 60_000;
const [since, until, margin] = [60, 120, 15];

const seeds = fc.uniqueArray(
  fc.record<Seed>({
    id: fc.string({ minLength: 1, maxLength: 8, unit: "grapheme" }).filter((id) => !id.includes("\0")),
    sentAt: fc.option(fc.integer({ min: 30, max: 150 }), { nil: undefined }),
    appliedAt: fc.option(fc.integer({ min: 30, max: 200 }), { nil: undefined }),
    changed: fc.boolean(),
  }),
  { selector: ({ id }) => id, maxLength: 40 },
);

/** What a comparison must say, from the definitions of docs/reconcile.md and without any sum. */
function expected(all: readonly Seed[]): Record<string, string[]> {
  const ids: Record<string, string[]> = {};
  const tell = (kind: string, id: string): void => void (ids[kind] ??= []).push(id);
  for (const { id, sentAt, appliedAt, changed } of all) {
    const listed = sentAt !== undefined && sentAt >= since - margin && sentAt < until + margin;
    if (sentAt !== undefined && sentAt >= since && sentAt < until) {
      if (appliedAt === undefined) tell("missing", id);
      else if (changed) tell("conflicting", id);
    }
    if (!listed && appliedAt !== undefined && appliedAt >= since && appliedAt < until) tell("extra", id);
  }
  for (const list of Object.values(ids)) list.sort();
  return ids;
}

test("says what a comparison of every pair would say, whatever lies on both sides", async (t) => {
  const { pool, fill, compare } = await ledgerCase(t);
  let differed = 0;
  await fc.assert(
    fc.asyncProperty(seeds, fc.integer({ min: 1, max: 50 }), async (all, maxDigests) => {
      await pool.query("truncate message");
      await fill(
        all
          .filter(({ appliedAt }) => appliedAt !== undefined)
          .map(({ id, appliedAt, changed }) => ({
            id,
            at: new Date(at(appliedAt!)),
            payload: changed ? `${id}!` : id,
          })),
      );
      const messages: SentMessage[] = all
        .filter(({ sentAt }) => sentAt !== undefined)
        .map(({ id, sentAt }) => ({
          ...{ tenant: "", producer: "payments", id, time: at(sentAt!) },
          fingerprint: computeFingerprint("b", id),
        }));
      const sent: SentSource = {
        name: "list",
        open: async () => ({
          async *read() {
            for (let i = 0; i < messages.length; i += 7) yield messages.slice(i, i + 7);
          },
          close: async () => undefined,
        }),
      };
      const { ids } = await compare({
        ...{ sent, maxDigests, producers: ["payments"], marginMs: margin * 60_000 },
        ...{ since: new Date(at(since)), until: new Date(at(until)) },
      });
      const model = expected(all);
      if (Object.keys(model).length > 1) differed += 1;
      assert.deepEqual(ids, model);
    }),
    { numRuns: 60 },
  );
  assert.ok(differed > 10, `only ${differed} of the cases had something to find`);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { sent, type Answer } from "../../src/relay/answer.ts";
import { answerOfError } from "../../src/relay/failure.ts";
import type { Destination } from "../../src/relay/destination.ts";
import type { Effect } from "../../src/relay/effect.ts";
import { createRelay, type Relay } from "../../src/relay/relay.ts";
import { bundle, testOutbox } from "../outbox/support.ts";
import { effect, networkError, until } from "./support.ts";

interface Plan {
  /** For each key, how many effects each of its transactions asks for, and how long it stays open before it commits. */
  readonly keys: readonly (readonly {
    readonly effects: number;
    /** As handlers ask for many: in one row. */
    readonly bundled: boolean;
    readonly openMs: number;
  }[])[];
  readonly unkeyed: number;
  readonly relays: number;
  readonly batches: boolean;
  /** How many in a hundred attempts fail before, and after they have arrived. */
  readonly failing: number;
  readonly unclear: number;
  readonly seed: number;
  /** A relay is stopped and another started, so often. */
  readonly changes: number;
}

const plan: fc.Arbitrary<Plan> = fc.record({
  keys: fc.array(
    fc.array(
      fc.record({
        effects: fc.integer({ min: 1, max: 12 }),
        bundled: fc.boolean(),
        openMs: fc.integer({ min: 0, max: 15 }),
      }),
      { minLength: 1, maxLength: 8 },
    ),
    { minLength: 1, maxLength: 6 },
  ),
  unkeyed: fc.integer({ min: 0, max: 30 }),
  relays: fc.integer({ min: 1, max: 3 }),
  batches: fc.boolean(),
  failing: fc.integer({ min: 0, max: 25 }),
  unclear: fc.integer({ min: 0, max: 15 }),
  seed: fc.integer(),
  changes: fc.integer({ min: 0, max: 3 }),
});

test("whatever fails, however many relays share the work: all arrives, a key in its order, and only what was unclear twice", async (t) => {
  const place = await testOutbox(t, {}, { max: 24 });
  await fc.assert(
    fc.asyncProperty(plan, async (given) => {
      await place.pool.query("truncate outbox, outbox_bundle, outbox_id, outbox_attempt, outbox_lane");
      const arrived: string[] = [];
      const random = seeded(given.seed);
      let unclear = 0;
      const one = async ({ id }: Effect): Promise<void> => {
        await new Promise((resolve) => setTimeout(resolve, random() * 3));
        if (random() * 100 < given.failing) throw new Error("It fails.");
        arrived.push(id);
        if (random() * 100 >= given.unclear) return;
        unclear++;
        throw networkError("ECONNRESET");
      };
      const there: Destination = {
        retryDelayMs: 50,
        maxRetryDelayMs: 100,
        pauseAfter: 1_000,
        maxBatch: 20,
        ...(given.batches
          ? {
              async deliverBatch(effects) {
                const stuck = new Set<string>();
                const answers: (Answer | undefined)[] = [];
                for (const each of effects) {
                  if (each.key !== undefined && stuck.has(each.key)) {
                    answers.push(undefined);
                    continue;
                  }
                  try {
                    await one(each);
                    answers.push(sent());
                  } catch (error) {
                    if (each.key !== undefined) stuck.add(each.key);
                    answers.push(answerOfError(error));
                  }
                }
                return answers;
              },
            }
          : {
              async deliver(each) {
                await one(each);
                return sent();
              },
            }),
      };
      const start = async (): Promise<Relay> => {
        const relay = createRelay({ store: place.store, destinations: { there }, random });
        await relay.start();
        return relay;
      };
      const relays = await Promise.all(Array.from({ length: given.relays }, start));

      const expected = given.keys.map((transactions, key) =>
        Array.from(
          { length: transactions.reduce((sum, { effects }) => sum + effects, 0) },
          (_, i) => `${key}-${i}`,
        ),
      );
      // A key's transactions follow each other, as those that hold its row do; different keys' overlap as they like.
      const senders = given.keys.map(async (transactions, key) => {
        let next = 0;
        for (const { effects, bundled, openMs } of transactions) {
          await place.commit(async (client) => {
            const list = Array.from({ length: effects }, () =>
              effect(`${key}-${next++}`, { key: String(key) }),
            );
            if (bundled) await bundle(place, client, list);
            else for (const each of list) await place.outbox.send(client, each);
            await new Promise((resolve) => setTimeout(resolve, openMs));
          });
        }
      });
      const others = Array.from({ length: given.unkeyed }, (_, i) => `free-${i}`);
      await place.commit((client) =>
        place.outbox.sendAll(
          client,
          others.map((id) => effect(id)),
        ),
      );
      for (let i = 0; i < given.changes; i++) {
        await relays.shift()?.stop();
        relays.push(await start());
      }
      await Promise.all(senders);
      await until(place.waiting, (waiting) => waiting.length === 0);
      await Promise.all(relays.map((relay) => relay.stop()));

      const first = arrived.filter((id, i) => arrived.indexOf(id) === i);
      for (const [key, ids] of expected.entries()) {
        assert.deepEqual(
          first.filter((id) => id.startsWith(`${key}-`)),
          ids,
        );
      }
      assert.deepEqual([...first].filter((id) => id.startsWith("free-")).sort(), [...others].sort());
      assert.equal(arrived.length - first.length, unclear);
      const attempts = await place.attempts();
      assert.equal(attempts.filter((line) => line.endsWith("ambiguous")).length, unclear);
      assert.equal(attempts.filter((line) => line.endsWith("sent")).length, first.length);
      const left = await place.pool.query("select 1 from outbox_lane where leased_until is not null");
      assert.equal(left.rowCount, 0);
    }),
    { numRuns: 10 },
  );
});

/** A seeded generator (mulberry32), so that a failing plan can be played again. */
function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

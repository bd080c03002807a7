import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { PermanentError, retryIn, type MessageHandler, type Work } from "../../src/index.ts";
import { message, recordEffect, testInbox } from "../inbox/support.ts";
import { effectsInOrder, listSource, until } from "./support.ts";

/** What becomes of a message each time it is run, in turn; then it is applied. */
type Fate = "fails" | "permanent" | "deferred" | "away";

const messages = fc.array(
  fc.record({
    key: fc.constantFrom("a", "b", "c", undefined),
    fates: fc.array(fc.constantFrom<Fate>("fails", "fails", "permanent", "deferred", "away"), {
      maxLength: 3,
    }),
  }),
  { minLength: 1, maxLength: 40 },
);

const play = fc.record({
  list: messages,
  // One way for all messages of a consumer: what is stored and not handled yet holds up nothing that is handled inline.
  how: fc.constantFrom("inline", "stored", "accepted"),
  parts: fc.integer({ min: 1, max: 4 }),
  workers: fc.integer({ min: 1, max: 3 }),
  lanes: fc.integer({ min: 1, max: 3 }),
  maxBatch: fc.constantFrom(1, 3, 500),
});

test(
  "whatever fails, waits and is decided, with several workers: each key keeps its order, nothing is lost, nothing doubled",
  { timeout: 180_000 },
  async (t) => {
    const { inboxWith, pool, store, quarantined } = await testInbox(t, {}, { max: 24 });
    let round = 0;
    await fc.assert(
      fc.asyncProperty(play, async ({ list, how, parts, workers, lanes, maxBatch }) => {
        await pool.query("truncate effect");
        const consumer = `c${round++}`;
        const make = () =>
          inboxWith({
            ...{ consumer, lanes, maxBatch },
            retry: { delayMs: 2, maxAttempts: 2, environment: { delayMs: 2 } },
          });
        const given = list.map(({ key }, i) => message(`m${String(i).padStart(2, "0")}`, { key }));
        const left = new Map(given.map(({ id }, i) => [id, [...list[i]!.fates]]));
        const handler: MessageHandler = async (received, context) => {
          await recordEffect(received, context);
          switch (left.get(received.id)?.shift()) {
            case "fails":
              throw new Error("not now");
            case "permanent":
              throw new PermanentError("never");
            case "deferred":
              return retryIn(1);
            case "away":
              throw Object.assign(new Error("the other side is away"), { code: "ECONNREFUSED" });
            case undefined:
              return undefined;
          }
        };
        const running: Work[] = Array.from({ length: workers }, () => make().work(handler));
        // The parts come one after another, as a producer sends them; workers are at it meanwhile.
        const inbox = make();
        const size = Math.ceil(given.length / parts);
        for (let from = 0; from < given.length; from += size) {
          const part = given.slice(from, from + size);
          if (how === "accepted") await inbox.accept(part);
          else if (how === "stored") await inbox.acceptFrom(listSource(part)).finished;
          else {
            const run = inbox.run(listSource(part), handler);
            while (run.stats().deliveries < part.length || run.stats().inHand > 0)
              await new Promise((resolve) => setTimeout(resolve, 1));
            await run.stop();
          }
        }
        // Whatever went to quarantine is retried until nothing is left; what follows it must have waited.
        for (;;) {
          await inbox.work(handler, { untilDrained: true }).finished;
          const { rows } = await pool.query<{ id: string }>(
            "select id from quarantine where consumer = $1 and status = 'open' order by id desc limit 1",
            [consumer],
          );
          if (rows[0] === undefined) break;
          await store.quarantined.decide("retry", rows[0].id, { by: "ann", why: "mended" });
        }
        await Promise.all(running.map((worker) => worker.stop()));
        await until(pool, `not exists (select from pending where consumer = '${consumer}')`);
        const order = await effectsInOrder(pool);
        assert.deepEqual(
          [...order].sort(),
          given.map(({ id }) => id),
        );
        const keyOf = new Map(given.map(({ id, key }) => [id, key]));
        for (const key of ["a", "b", "c"]) {
          const own = order.filter((id) => keyOf.get(id) === key);
          assert.deepEqual(own, [...own].sort(), `key ${key}: ${own.join(" ")}`);
        }
      }),
      { numRuns: 25, endOnFailure: true },
    );
    assert.ok((await quarantined()).length > 0);
  },
);

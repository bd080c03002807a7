import assert from "node:assert/strict";
import { test } from "node:test";
import { again, sent } from "../../src/relay/answer.ts";
import type { Destination } from "../../src/relay/destination.ts";
import { testOutbox } from "../outbox/support.ts";
import { effect, gate, networkError, startRelay, until } from "./support.ts";

const dead = (answer: () => Promise<never>): Destination => ({ deliver: answer, retryDelayMs: 0 });

test("of ten destinations one that hangs and one that refuses hold up none of the others, and nothing of theirs is lost", async (t) => {
  const place = await testOutbox(t, {}, { max: 24 });
  const names = Array.from({ length: 8 }, (_, i) => `there-${i}`);
  const back = gate();
  const arrived: string[] = [];
  let hangs = true;
  const living: Destination = {
    async deliver({ id }) {
      arrived.push(id);
      return sent();
    },
  };
  const relay = await startRelay(t, place, {
    ...Object.fromEntries(names.map((name) => [name, living])),
    hanging: {
      async deliver({ id }) {
        if (hangs) await back.opened;
        arrived.push(id);
        return sent();
      },
    },
    refusing: dead(() => Promise.reject(networkError("ECONNREFUSED"))),
  });
  // More for the dead ones than all that a relay has in hand of a destination.
  const ask = (destination: string, count: number, key?: string): Promise<unknown> =>
    place.commit((client) =>
      place.outbox.sendAll(
        client,
        Array.from({ length: count }, (_, i) =>
          effect(`${destination}-${i}`, {
            destination,
            ...(key === undefined ? {} : { key: `${key}${i % 7}` }),
          }),
        ),
      ),
    );
  await Promise.all([ask("hanging", 2_000, "k"), ask("refusing", 2_000)]);
  await until(() => relay.health()["refusing"]!.state === "paused" && relay.health()["hanging"]!.inHand > 0);
  for (const name of names) await ask(name, 50, "k");
  await until(() => arrived.length >= 400);
  assert.equal(new Set(arrived).size, 400);
  assert.ok(arrived.every((id) => id.startsWith("there-")));
  assert.ok(relay.health()["hanging"]!.inHand <= 64);
  const { rows } = await place.pool.query<{ counted: number; n: number }>(
    "select counted, count(*)::int as n from outbox where destination = 'refusing' group by counted",
  );
  // Whatever it refused while it was away counts against none.
  assert.deepEqual(rows, [{ counted: 0, n: 2_000 }]);
  hangs = false;
  back.open();
  await until(() => arrived.length >= 2_400);
});

test("a destination that is away for days uses up no effect's attempts; what has a time limit is given up when that is over", async (t) => {
  const place = await testOutbox(t);
  let away = true;
  const arrived: string[] = [];
  await place.commit(async (client) => {
    await place.outbox.send(client, effect("lasting", { key: "a" }));
    await place.outbox.send(client, effect("limited", { key: "a", lifetimeMs: 60_000 }));
    await place.outbox.send(client, effect("behind", { key: "a" }));
  });
  const relay = await startRelay(t, place, {
    there: {
      ...{ maxAttempts: 2, retryDelayMs: 0, pauseAfter: 1_000_000 },
      async deliver({ id }) {
        if (away) return again(new Error("It is away."), { fault: "destination" });
        arrived.push(id);
        return sent();
      },
    },
  });
  await until(
    async () => (await place.attempts()).filter((line) => line === "lasting: failed").length,
    (failed) => failed > 20,
  );
  await place.pool.query("update outbox set expires_at = clock_timestamp() where effect_id = 'limited'");
  away = false;
  await until(() => arrived.includes("behind"));
  assert.deepEqual(arrived, ["lasting", "behind"]);
  await until(place.waiting, (waiting) => waiting.length === 0);
  assert.ok((await place.attempts()).includes("limited: expired"));
  await relay.stop();
});

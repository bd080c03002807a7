import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { migrate } from "../../src/store/postgres/migrate.ts";
import { postgres } from "../../src/store/postgres/postgres.ts";
import type { Store } from "../../src/store/store.ts";
import { testDatabase } from "../support/postgres.ts";

const decider = { by: "ann", why: "fixed" };

const put = (store: Store, id: string): Promise<unknown> =>
  store.quarantine(
    { consumer: "accounting", handlerVersion: "1" },
    {
      identity: { digest: randomBytes(16).toString("hex"), tenant: "", producer: "shop", id },
      rawIdentity: undefined,
      key: id,
      type: undefined,
      headers: {},
      payload: Buffer.from("{}"),
      fingerprint: { mode: "b", digest: randomBytes(32).toString("hex") },
      code: "handler-rejected",
      error: `no account ${id}`,
      attempts: 1,
      blocking: true,
    },
  );

test("two operators at once: one retry, and the other is told who decided", async (t) => {
  const { pool, schema } = await testDatabase(t);
  await migrate(pool, { schema });
  const store = postgres(pool, { schema });
  await put(store, "m1");
  const [row] = await store.quarantined.list({});
  const answers = await Promise.all([
    store.quarantined.decide("retry", row!.id, decider),
    store.quarantined.decide("discard", row!.id, decider),
  ]);
  const refused = answers.filter((answer) => typeof answer !== "string");
  assert.equal(refused.length, 1);
  assert.equal(refused[0]?.code, "already-decided");
  assert.match(refused[0]?.message ?? "", /"ann"/);
});

test("a decision on many is refused when the count has changed, and reaches each entry once", async (t) => {
  const { pool, schema } = await testDatabase(t);
  await migrate(pool, { schema });
  const store = postgres(pool, { schema });
  for (const id of ["1", "2", "3"]) await put(store, id);
  assert.deepEqual(
    (await store.quarantined.groups({}, 10)).map(({ count }) => count),
    [3],
  );
  const wrong = await store.quarantined.decideMany("retry", {}, decider, 2);
  assert.deepEqual([wrong.matched, wrong.decision], [3, undefined]);
  const { decision } = await store.quarantined.decideMany("retry", {}, decider, 3);
  const done = await store.quarantined.carryOn(decision!.id);
  assert.deepEqual([done?.decided, done?.skipped, done?.finishedAt === undefined], [3, 0, false]);
  const { rows } = await pool.query<{ n: number }>("select count(*)::int as n from pending");
  assert.deepEqual(rows, [{ n: 3 }]);
  assert.equal(await store.quarantined.count({}), 0);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Plan } from "./plan.ts";
import { crashTest } from "./support.ts";
import { accept, run } from "./workers.ts";

const patienceMs = 100_000;

for (const mode of ["work", "inline"] as const) {
  test(`abort() on one message of 1,000, ${mode}: 999 effects, one is crashed, and few processes die`, async (t) => {
    const test = await crashTest(t, { prefetch: 1_000 });
    const bodies = Array.from({ length: 1_000 }, (_, i) => ({
      id: i === 500 ? "poison" : `m${i}`,
      // Nothing of the poison's key comes behind it.
      key: i === 500 ? "poison" : `k${i % 50}`,
      amount: 1,
    }));
    if (mode === "work") await accept(test, bodies);
    else test.publish(bodies);
    const plan: Partial<Plan> = {
      mode,
      run,
      poison: { id: "poison", by: "abort" },
      inbox: { lanes: 4, maxCrashes: 2 },
    };
    let deaths = 0;
    const done = test.until(
      "(select count(*) from effect) >= 999 and exists (select from quarantine) and not exists (select from pending)",
      patienceMs,
    );
    done.catch(() => undefined);
    for (let over = false; !over;) {
      const died = test
        .start(plan)
        .killed(patienceMs)
        .then(() => "died");
      died.catch(() => undefined);
      over = (await Promise.race([done.then(() => "done"), died])) === "done";
      if (over) break;
      if (++deaths > 6) throw new Error("Seven processes died.");
      await test.until(
        "not exists (select from worker where closed_at is null and lease_until > clock_timestamp())",
      );
    }
    assert.ok(deaths <= 3, `${deaths} deaths`);
    assert.deepEqual(await test.quarantined(), ["poison: crashed, 2, 1"]);
    const effects = await test.effects();
    assert.equal(Object.keys(effects).length, 999);
    assert.ok(Object.values(effects).every((times) => times === 1));
    assert.deepEqual(await test.attempts(), {});
  });
}

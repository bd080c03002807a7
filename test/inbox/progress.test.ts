import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { createProgress, type DeliveryCounts } from "../../src/inbox/progress.ts";
import type { ProgressReport, ProgressStore } from "../../src/store/progress.ts";

type Told = ProgressReport | "leaves" | "retired";

/** A source whose lag and deliveries a test writes, and what is reported of it. */
function played(t: TestContext, given: { readonly lag?: () => number | undefined }) {
  const counts = { taken: 0, acknowledged: 0, oldestInHand: undefined as number | undefined };
  const told: Told[] = [];
  let heard: () => void = () => undefined;
  const note = async (one: Told): Promise<void> => {
    told.push(one);
    heard();
  };
  const store: ProgressStore = {
    report: (_consumer, _source, _worker, report) => note(report),
    leave: () => note("leaves"),
    retire: async () => (await note("retired"), true),
    list: async () => [],
  };
  const lag = given.lag;
  const progress = createProgress({
    source: lag === undefined ? { name: "played" } : { name: "played", lag: async () => lag() },
    ...{ store, consumer: "accounting", workerId: "", everyMs: 10 },
    counts: (): DeliveryCounts => ({ ...counts }),
  });
  // Its own timer keeps no process alive.
  const alive = setInterval(() => undefined, 1_000);
  t.after(async () => {
    clearInterval(alive);
    await progress.stop(false);
  });
  /** The next thing that is told, of what is true from now on. */
  const next = async (): Promise<Told> => {
    // One report may have looked around before.
    for (let i = 0; i < 2; i++) await new Promise<void>((resolve) => (heard = resolve));
    return told.at(-1)!;
  };
  progress.start();
  return { progress, counts, told, next };
}

const caughtUp = (told: Told): boolean => typeof told === "object" && told.behindMs !== undefined;

test("a source with nothing waiting is caught up at once", async (t) => {
  const { next } = played(t, { lag: () => 0 });
  const told = await next();
  assert.ok(typeof told === "object" && told.behindMs! < 30_000);
});

test("a backlog is worked off first, however much is settled of it", async (t) => {
  let lag = 1_000;
  const { counts, next } = played(t, { lag: () => lag });
  assert.equal(caughtUp(await next()), false);
  [counts.taken, counts.acknowledged, lag] = [999, 999, 500];
  assert.equal(caughtUp(await next()), false);
  [counts.taken, counts.acknowledged] = [1_000, 1_000];
  assert.ok(caughtUp(await next()));
});

test("a busy source that never has nothing waiting is as far as what it had then and has settled since", async (t) => {
  const lag = 50;
  const { counts, next } = played(t, { lag: () => lag });
  await next();
  for (let i = 0; i < 5; i++) {
    counts.taken += 50;
    counts.acknowledged += 50;
    const told = await next();
    assert.ok(i === 0 || caughtUp(told), `${i}`);
  }
});

test("what is in hand since before holds the clock, whatever is settled behind it", async (t) => {
  const { counts, next } = played(t, { lag: () => 5 });
  [counts.taken, counts.oldestInHand] = [1, 1];
  await next();
  [counts.taken, counts.acknowledged] = [1_000, 999];
  assert.equal(caughtUp(await next()), false);
  counts.oldestInHand = undefined;
  assert.ok(caughtUp(await next()));
});

test("what goes back to the broker begins the count anew", async (t) => {
  const { progress, counts, next } = played(t, { lag: () => 10 });
  await next();
  progress.retried();
  counts.acknowledged = 10;
  await next();
  progress.retried();
  assert.equal(caughtUp(await next()), false);
});

test("without an answer of the broker nothing advances, and without anything to say the worker leaves", async (t) => {
  let answer: "throws" | number | undefined = "throws";
  const { told, next } = played(t, {
    lag() {
      if (answer === "throws") throw new Error("away");
      return answer;
    },
  });
  assert.deepEqual(await next(), { behindMs: undefined, everyMs: 10 });
  answer = undefined;
  // It leaves once; then there is nothing to tell.
  while (told.at(-1) !== "leaves") await new Promise((resolve) => setImmediate(resolve));
  answer = 0;
  assert.ok(caughtUp(await next()));
});

test("a source that cannot tell what waits is caught up with what it handed over, after some time to begin", async (t) => {
  const started = performance.now();
  const { counts, next } = played(t, {});
  [counts.taken, counts.oldestInHand] = [1, 1];
  let told = await next();
  while (performance.now() - started < 100) {
    told = await next();
    assert.equal(caughtUp(told), false);
  }
  [counts.taken, counts.oldestInHand] = [2, 2];
  told = await next();
  while (!caughtUp(told)) told = await next();
  assert.ok(performance.now() - started >= 40);
});

test("a source that comes to its own end holds nothing up; one that is stopped does", async (t) => {
  const ended = played(t, { lag: () => 0 });
  await ended.next();
  await ended.progress.stop(true);
  assert.equal(ended.told.at(-1), "retired");
  const stopped = played(t, { lag: () => 0 });
  await stopped.next();
  await stopped.progress.stop(false);
  assert.equal(stopped.told.at(-1), "leaves");
  await stopped.progress.stop(false);
  assert.equal(stopped.told.filter((one) => one === "leaves").length, 1);
});

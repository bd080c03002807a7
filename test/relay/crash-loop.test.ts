import assert from "node:assert/strict";
import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { test } from "node:test";
import { bundle } from "../../scripts/bundle.ts";
import { createOutboxConsole } from "../../src/outbox/console.ts";
import { onTestEnd, type Scope } from "../support/cleanup.ts";
import { testOutbox, type TestOutbox } from "../outbox/support.ts";
import { effect, until } from "./support.ts";

let program: Promise<string> | undefined;

interface Relays {
  /** Names of effects in the order in which deliveries began, in all processes. */
  readonly begun: string[];
  readonly deaths: () => number;
}

/** Keeps so many relay processes running, each replaced when it dies. */
async function keepRelays(t: Scope, place: TestOutbox, count: number): Promise<Relays> {
  const path = await (program ??= bundle(join(import.meta.dirname, "aborting-relay.ts")));
  const begun: string[] = [];
  const alive = new Set<ChildProcess>();
  let deaths = 0;
  let over = false;
  const start = (): void => {
    const plan = JSON.stringify({ url: place.url, schema: place.schema });
    const child = fork(path, [plan], { execArgv: [], stdio: ["ignore", "inherit", "inherit", "ipc"] });
    alive.add(child);
    child.on("message", (name) => void begun.push(name as string));
    child.once("exit", () => {
      alive.delete(child);
      deaths++;
      if (!over) start();
    });
  };
  onTestEnd(t, async () => {
    over = true;
    await Promise.all(
      [...alive].map((child) => {
        const gone = once(child, "exit");
        child.kill("SIGKILL");
        return gone;
      }),
    );
  });
  for (let n = 0; n < count; n++) start();
  return { begun, deaths: () => deaths };
}

for (const destination of ["there", "batched"]) {
  test(`an effect that kills its relay (${destination}) is found, refused as crashed, and harms no other`, async (t) => {
    const place = await testOutbox(t);
    const desk = createOutboxConsole({ store: place.store });
    const others = Array.from({ length: 20 }, (_, i) => `m${i}`);
    await place.commit((client) =>
      place.outbox.sendAll(client, [
        ...others.map((id, i) => effect(id, { destination, key: i % 2 === 0 ? `k${i % 6}` : undefined })),
        effect("killer", { destination, key: "k" }),
        effect("behind", { destination, key: "k" }),
        ...others.map((id) => effect(id, { destination: "elsewhere" })),
      ]),
    );
    const { begun, deaths } = await keepRelays(t, place, 1);
    const [entry] = await until(
      () => desk.list(),
      (rows) => rows.length > 0,
    );
    assert.deepEqual([entry!.effectId, entry!.code, entry!.holdsKey], ["killer", "crashed", true]);
    assert.match(entry!.error, /died 2 times/);
    await until(place.waiting, (waiting) => waiting.length === 2);
    assert.deepEqual(await place.waiting(), ["killer", "behind"]);
    // Once unmarked, and as often as is allowed behind a mark; a relay that has not yet heard of a death is one more.
    const died = begun.filter((name) => name === `${destination} killer`).length;
    assert.ok(died >= 3 && died <= 6, `${died} deaths`);
    assert.equal(deaths(), died);
    const attempts = await place.attempts();
    for (const id of others) assert.equal(attempts.filter((line) => line === `${id}: sent`).length, 2);
    assert.equal(attempts.filter((line) => !line.endsWith(": sent")).length, 1);
    assert.equal(begun.includes(`${destination} behind`), false);

    // The decision is a person's: what was behind it goes on, and nothing dies any more.
    await desk.discard(entry!.id, { by: "ann", why: "it kills" });
    await until(place.waiting, (waiting) => waiting.length === 0);
    assert.equal(deaths(), died);
  });
}

test("two killers among two relays are both found, each counted by itself", async (t) => {
  const place = await testOutbox(t);
  const desk = createOutboxConsole({ store: place.store });
  const others = Array.from({ length: 30 }, (_, i) => `m${i}`);
  await place.commit((client) =>
    place.outbox.sendAll(client, [
      effect("killer1", { destination: "there" }),
      ...others.map((id) => effect(id, { destination: "there" })),
      effect("killer2", { destination: "elsewhere" }),
    ]),
  );
  const { deaths } = await keepRelays(t, place, 2);
  const refused = await until(
    () => desk.list(),
    (rows) => rows.length === 2,
  );
  assert.deepEqual(refused.map(({ effectId, code }) => `${effectId} ${code}`).sort(), [
    "killer1 crashed",
    "killer2 crashed",
  ]);
  await until(place.waiting, (waiting) => waiting.length === 2);
  const attempts = await place.attempts();
  for (const id of others) assert.equal(attempts.filter((line) => line === `${id}: sent`).length, 1);
  // Three each, and one more for each time that a relay has not yet heard of a death: bounded, on a busy machine too.
  assert.ok(deaths() <= 12, `${deaths()} deaths`);
});

import assert from "node:assert/strict";
import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { bundle } from "../../scripts/bundle.ts";
import { migrate } from "../../src/store/postgres/migrate.ts";
import { onTestEnd, type Scope } from "../support/cleanup.ts";
import { testSchema } from "../support/postgres.ts";
import { testOutbox, type TestOutbox } from "../outbox/support.ts";
import { relayPoints, type RelayPlan } from "./relay-plan.ts";
import { effect, until } from "./support.ts";

const keys = 5;
const count = 60;
const ids = Array.from({ length: count }, (_, i) => `m${i}`);

let program: Promise<string> | undefined;

interface Hook {
  readonly url: string;
  /** Idempotency keys of the requests that were answered or could have been, in the order they came. */
  readonly arrived: readonly string[];
}

async function hook(t: Scope): Promise<Hook> {
  const arrived: string[] = [];
  const server = createServer((request, response) => {
    request.resume();
    request.on("end", () => {
      arrived.push(String(request.headers["ce-id"]));
      response.end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestEnd(t, () => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, arrived };
}

async function relayProcess(t: Scope, plan: RelayPlan): Promise<ChildProcess> {
  const path = await (program ??= bundle(join(import.meta.dirname, "dying-relay.ts")));
  const child = fork(path, [JSON.stringify(plan)], {
    execArgv: [],
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  onTestEnd(t, async () => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill("SIGKILL");
      await once(child, "exit");
    }
  });
  return child;
}

const sendAll = (place: TestOutbox): Promise<unknown> =>
  place.commit((client) =>
    place.outbox.sendAll(
      client,
      ids.map((id, i) => effect(id, { key: String(i % keys) })),
    ),
  );

/** First arrivals of each key are in their order, and all are there. */
function inOrder(arrived: readonly string[]): void {
  const first = arrived.filter((id, i) => arrived.indexOf(id) === i);
  for (let key = 0; key < keys; key++) {
    assert.deepEqual(
      first.filter((id) => Number(id.slice(1)) % keys === key),
      ids.filter((_, i) => i % keys === key),
    );
  }
}

for (const at of relayPoints) {
  for (const after of at === "taken" || at === "sending" ? [0] : [3]) {
    test(`a relay killed at "${at}", passed ${after} times: another one sends all by HTTP, in order, each in doubt at most twice`, async (t) => {
      const place = await testOutbox(t);
      const { url: hookUrl, arrived } = await hook(t);
      const plan: RelayPlan = { url: place.url, schema: place.schema, hook: hookUrl };
      await sendAll(place);
      const first = await relayProcess(t, { ...plan, die: { at, after } });
      const [, signal] = (await once(first, "exit")) as [number | null, string | null];
      assert.equal(signal, "SIGKILL");
      const sentBefore = (await place.attempts()).length;
      if (at === "taken" || at === "sending") assert.equal(arrived.length, 0);
      // What is marked as sent has arrived.
      for (const line of await place.attempts()) assert.ok(arrived.includes(line.replace(": sent", "")));

      await relayProcess(t, plan);
      await until(place.waiting, (waiting) => waiting.length === 0);
      inOrder(arrived);
      const attempts = await place.attempts();
      assert.equal(attempts.length, count);
      assert.ok(attempts.every((line) => line.endsWith(": sent")));
      // In doubt is what was in the dead relay's hands: four calls side by side, and what it had not written.
      const twice = arrived.length - count;
      assert.ok(twice >= 0 && twice <= count - sentBefore, `${twice} twice`);
      for (const id of ids) assert.ok(arrived.filter((one) => one === id).length <= 2);
    });
  }

  test(`a relay killed at "${at}" on the way to another inbox: each message is there once, in order`, async (t) => {
    const place = await testOutbox(t);
    const inboxSchema = await testSchema(t);
    await migrate(place.pool, { schema: inboxSchema });
    const plan: RelayPlan = {
      url: place.url,
      schema: place.schema,
      hook: "http://127.0.0.1:1/",
      inboxSchema,
    };
    await sendAll(place);
    const first = await relayProcess(t, { ...plan, die: { at, after: 1 } });
    const [, signal] = (await once(first, "exit")) as [number | null, string | null];
    assert.equal(signal, "SIGKILL");
    await relayProcess(t, plan);
    await until(place.waiting, (waiting) => waiting.length === 0);
    const { rows } = await place.pool.query<{ message_id: string }>(
      `select message_id from ${inboxSchema}.pending order by position`,
    );
    assert.equal(rows.length, count);
    inOrder(rows.map((row) => row.message_id));
  });
}

test("relays are killed at random while others work and effects come in: nothing is lost, no key out of order", async (t) => {
  const place = await testOutbox(t);
  const { url: hookUrl, arrived } = await hook(t);
  const plan: RelayPlan = { url: place.url, schema: place.schema, hook: hookUrl };
  const relays = [await relayProcess(t, plan), await relayProcess(t, plan)];
  await Promise.all(relays.map((child) => once(child, "message")));
  let next = 0;
  const sender = (async () => {
    while (next < count) {
      const id = ids[next]!;
      await place.commit((client) => place.outbox.send(client, effect(id, { key: String(next % keys) })));
      next++;
    }
  })();
  for (let kills = 0; kills < 6; kills++) {
    const before = arrived.length;
    await until(() => arrived.length > before || next === count);
    const victim = relays.shift()!;
    victim.kill("SIGKILL");
    await once(victim, "exit");
    const fresh = await relayProcess(t, plan);
    await once(fresh, "message");
    relays.push(fresh);
  }
  await sender;
  await until(place.waiting, (waiting) => waiting.length === 0).finally(async () => {
    const { rows } = await place.pool.query("select effect_id, code, error from outbox_refusal");
    assert.deepEqual(rows, []);
  });
  inOrder(arrived);
  assert.equal((await place.attempts()).length, count);
});

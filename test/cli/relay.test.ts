import assert from "node:assert/strict";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createServer, get } from "node:http";
import type { AddressInfo } from "node:net";
import { createInterface } from "node:readline";
import test from "node:test";
import { createOutbox } from "../../src/outbox/outbox.ts";
import type { EffectInput } from "../../src/outbox/effect.ts";
import { onTestEnd, type Scope } from "../support/cleanup.ts";
import { inTransaction } from "../outbox/support.ts";
import { effect, until } from "../relay/support.ts";
import { objects, testDesk, type TestDesk } from "./desk.ts";
import { finished, spawnInbox } from "./run-inbox.ts";

interface Hook {
  readonly url: string;
  readonly arrived: string[];
  /** Answers wait for it while it is set. */
  hold: Promise<void> | undefined;
}

async function hook(t: Scope): Promise<Hook> {
  const here: Hook = { url: "", arrived: [], hold: undefined };
  const server = createServer((request, response) => {
    request.resume().on("end", () => {
      here.arrived.push(String(request.headers["x-id"]));
      void Promise.resolve(here.hold).then(() => response.end("ok"));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestEnd(t, () => {
    server.closeAllConnections();
    server.close();
  });
  return Object.assign(here, { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` });
}

const moduleFor = (url: string): string => `
export const relay = { leaseMs: 400, pollIntervalMs: 10 };
export const destinations = ({ store, pool }) => {
  if (typeof store.ping !== "function" || typeof pool.query !== "function") throw new Error("no context");
  return {
    there: async (effect) => {
      if (effect.id.startsWith("bad")) throw Object.assign(new Error("refused"), { [Symbol.for("transactional-inbox.permanent")]: true });
      const response = await fetch(${JSON.stringify(url)}, { method: "POST", headers: { "x-id": effect.id } });
      if (!response.ok) throw new Error("status " + response.status);
      return response.status;
    },
  };
};
`;

const sendAll = (desk: TestDesk, effects: readonly EffectInput[]) =>
  inTransaction(desk.pool, (client) =>
    createOutbox({ store: desk.store, producer: "orders" }).sendAll(client, effects),
  );

const waiting = async (desk: TestDesk): Promise<number> =>
  (await desk.pool.query<{ n: number }>("select count(*)::int as n from outbox")).rows[0]!.n;

/** A relay process, and the events that it tells. */
function startRelay(t: Scope, desk: TestDesk, config: string, ...args: readonly string[]) {
  const child: ChildProcess = spawnInbox(
    ["relay", "--config", config, "--schema", desk.schema, "--json", ...args],
    { env: desk.env },
  );
  const gone = once(child, "exit");
  const events: Record<string, unknown>[] = [];
  let stderr = "";
  createInterface({ input: child.stdout! }).on("line", (line) => {
    events.push(JSON.parse(line) as Record<string, unknown>);
  });
  child.stderr!.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
  onTestEnd(t, async () => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill("SIGKILL");
      await gone;
    }
  });
  const event = async (name: string): Promise<Record<string, unknown>> => {
    const found = await until(
      () => events.find((one) => one["event"] === name) ?? (child.exitCode === null ? undefined : stderr),
    );
    return typeof found === "object" ? found : assert.fail(found);
  };
  return { child, gone, event, stderr: () => stderr };
}

test("relay --once sends what may be sent now and ends; 3 says that something needs a person", async (t) => {
  const desk = await testDesk(t);
  const { url, arrived } = await hook(t);
  const config = desk.file("relay.mjs", moduleFor(url));
  await sendAll(desk, [effect("m1"), effect("m2", { key: "k" }), effect("later", { delayMs: 3_600_000 })]);
  const run = (...args: string[]) =>
    finished(
      spawnInbox(["relay", "--config", config, "--schema", desk.schema, "--once", ...args], {
        env: desk.env,
      }),
    );
  const first = await run("--json");
  assert.equal(first.code, 0, first.stderr);
  assert.deepEqual([...arrived].sort(), ["m1", "m2"]);
  const told = objects(first.stdout);
  assert.deepEqual(
    told.map(({ event }) => event),
    ["started", "stopped"],
  );
  assert.deepEqual(
    [told[1]!["sent"], told[1]!["failed"], told[1]!["waiting"], told[1]!["refused"]],
    [2, 0, 1, 0],
  );
  await sendAll(desk, [effect("bad")]);
  const second = await run();
  assert.equal(second.code, 3, second.stderr);
  assert.equal(second.stdout, "");
  assert.match(second.stderr, /0 effects sent, 1 attempt failed, 1 wait, 1 refused/);
});

test("SIGTERM: what is in flight is waited for and recorded, the rest is given back at once, and health is told", async (t) => {
  const desk = await testDesk(t);
  const there = await hook(t);
  let open: () => void = () => undefined;
  there.hold = new Promise((resolve) => (open = resolve));
  // Two calls at a time, so that something is left.
  const slow = moduleFor(there.url)
    .replace("export const destinations", "const made")
    .concat("export const destinations = (context) => { const { there } = made(context); ")
    .concat(
      "return { there: { concurrency: 2, deliver: async (e, c) => { await there(e, c); return sent(); } } }; };\n",
    )
    .concat('const sent = () => ({ [Symbol.for("transactional-inbox.destination-answer")]: "sent" });');
  const config = desk.file("relay.mjs", slow);
  await sendAll(
    desk,
    Array.from({ length: 8 }, (_, i) => effect(`m${i}`)),
  );
  const relay = startRelay(t, desk, config, "--health", "127.0.0.1:0");
  const started = await relay.event("started");
  const { port } = started["health"] as { port: number };
  await until(() => there.arrived.length === 2);
  const health = await new Promise<{ status: number | undefined; body: string }>((resolve, reject) => {
    get({ port, host: "127.0.0.1" }, (response) => {
      let body = "";
      response.on("data", (chunk: Buffer) => (body += chunk.toString()));
      response.on("end", () => resolve({ status: response.statusCode, body }));
    }).on("error", reject);
  });
  assert.equal(health.status, 200);
  const told = JSON.parse(health.body) as { store: string; destinations: { there: { state: string } } };
  assert.deepEqual([told.store, told.destinations.there.state], ["ok", "open"]);
  relay.child.kill("SIGTERM");
  await until(() => relay.stderr().includes("Stopping"));
  open();
  there.hold = undefined;
  const [code] = (await relay.gone) as [number | null];
  assert.equal(code, 0, relay.stderr());
  assert.equal((await relay.event("stopped"))["sent"], 2);
  assert.equal(there.arrived.length, 2);
  assert.equal(await waiting(desk), 6);
  const held = await desk.pool.query("select from outbox_lane where leased_until is not null");
  assert.equal(held.rowCount, 0);
  const worker = await desk.pool.query("select from worker where closed_at is null");
  assert.equal(worker.rowCount, 0);
});

test("SIGTERM while it starts ends it as soon as it has", async (t) => {
  const desk = await testDesk(t);
  const { url } = await hook(t);
  const config = desk.file("relay.mjs", moduleFor(url));
  await inTransaction(desk.pool, async (holder) => {
    await holder.query("lock table outbox_lane in exclusive mode");
    const relay = startRelay(t, desk, config);
    await until(async () => {
      const waits = await desk.pool.query(
        "select from pg_locks where relation = 'outbox_lane'::regclass and not granted",
      );
      return waits.rowCount! > 0;
    });
    relay.child.kill("SIGTERM");
    await until(() => relay.stderr().includes("Stopping"));
    await holder.query("commit");
    const [code] = (await relay.gone) as [number | null];
    assert.equal(code, 0, relay.stderr());
    await holder.query("begin");
  });
});

test("SIGKILL of one of two relays at a time: everything arrives, under one id each", async (t) => {
  const desk = await testDesk(t);
  const { url, arrived } = await hook(t);
  const config = desk.file("relay.mjs", moduleFor(url));
  const relays = [startRelay(t, desk, config), startRelay(t, desk, config)];
  await Promise.all(relays.map((relay) => relay.event("started")));
  const count = 120;
  const ids = Array.from({ length: count }, (_, i) => `m${i}`);
  for (let round = 0; round < 2; round++) {
    const before = arrived.length;
    const part = ids.slice((round * count) / 2, ((round + 1) * count) / 2);
    await sendAll(
      desk,
      part.map((id, i) => effect(id, { key: `k${i % 5}` })),
    );
    await until(() => arrived.length > before + 10);
    const [victim] = relays.splice(0, 1);
    victim!.child.kill("SIGKILL");
    await victim!.gone;
    relays.push(startRelay(t, desk, config));
  }
  await until(
    () => waiting(desk),
    (left) => left === 0,
  );
  assert.deepEqual([...new Set(arrived)].sort(), [...ids].sort());
  const { rows } = await desk.pool.query<{ n: number }>(
    "select count(*)::int as n from outbox_attempt where outcome = 'sent'",
  );
  assert.equal(rows[0]!.n, count);
});

test("relay without destinations, or with what is none, is wrong usage", async (t) => {
  const desk = await testDesk(t);
  const texts = [
    "export const redact = [];",
    "export const destinations = {};",
    "export const destinations = () => undefined;",
    "export const destinations = { there: 1 };",
    "export const destinations = { there: () => 1 }; export const relay = { store: 1 };",
    "export const destinations = { there: () => 1 }; export const relay = { leaseMs: 1 };",
  ];
  for (const [index, text] of texts.entries()) {
    const config = desk.file(`relay-${index}.mjs`, text);
    const { code, stderr } = await desk.inbox("relay", "--config", config, "--once");
    assert.equal(code, 2, `${text}\n${stderr}`);
  }
  assert.equal((await desk.inbox("relay", "--once")).code, 2);
  assert.equal((await desk.inbox("relay", "--health", "70000")).code, 2);
  assert.equal((await desk.inbox("relay", "--config", "missing.mjs")).code, 2);
});

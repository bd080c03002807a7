import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import test, { type TestContext } from "node:test";
import { processAlive } from "../../src/local-postgres/process-alive.ts";
import { onTestEnd } from "../support/cleanup.ts";
import { brokenWay, greeterKind, greetingAt, type GreeterFacts } from "./fixtures/greeter.ts";
import type { Instance } from "./instance.ts";
import { ownInstance } from "./own.ts";
import type { Kind, Place } from "./way.ts";

const help = { install: false, say: () => undefined };

async function own(t: TestContext, root: string, kind: Kind<GreeterFacts>): Promise<Instance<GreeterFacts>> {
  const made = await ownInstance("greeter", kind, help, root);
  assert.ok(typeof made !== "string", JSON.stringify(made));
  onTestEnd(t, () => made.remove());
  return made;
}

function directory(t: TestContext): string {
  const root = mkdtempSync(join(tmpdir(), "inbox-own-"));
  onTestEnd(t, () => rmSync(root, { recursive: true, force: true }));
  return root;
}

test("a service of a test's own keeps its address and its data through kill, stop and start", async (t) => {
  const greeter = await own(t, directory(t), greeterKind());
  const { port } = greeter.facts;
  await greeter.kill();
  await assert.rejects(greetingAt(greeter.facts));
  await greeter.start();
  await greeter.restart();
  assert.equal(await greetingAt({ host: "127.0.0.1", port }), "hello, start start start");
});

test("a program that has taken the port meanwhile is not ended, and the start fails", async (t) => {
  const greeter = await own(t, directory(t), greeterKind());
  await greeter.kill();
  // It even speaks the protocol.
  const foreign = createServer((socket) => socket.end("hello, I took it"));
  foreign.listen(greeter.facts.port, "127.0.0.1");
  await once(foreign, "listening");
  onTestEnd(t, () => void foreign.close());

  await assert.rejects(greeter.start(), /EADDRINUSE/);
  assert.equal(await greetingAt(greeter.facts), "hello, I took it");
});

test("a port that is taken between its choice and the start is replaced by another", async (t) => {
  const kind = greeterKind();
  const taken: number[] = [];
  const ways = kind.ways.map((way) => ({
    ...way,
    plan: (place: Place) => {
      const plan = way.plan(place);
      const { port } = plan.facts;
      return {
        ...plan,
        async setUp() {
          await plan.setUp?.();
          if (taken.length > 0) return;
          taken.push(port);
          const foreign = createServer((socket) => socket.end("hello, I was faster"));
          foreign.listen(port, "127.0.0.1");
          await once(foreign, "listening");
          onTestEnd(t, () => void foreign.close());
        },
      };
    },
  }));
  const greeter = await own(t, directory(t), { ...kind, ways });
  assert.equal(taken.length, 1);
  assert.notEqual(greeter.facts.port, taken[0]);
  assert.equal(await greetingAt(greeter.facts), "hello, start");
});

test("what a killed test left is ended and removed by the next one, and a living test's is not", async (t) => {
  const root = directory(t);
  const living = await own(t, root, greeterKind());
  const left = await own(t, root, greeterKind());
  const helper = Number(readFileSync(join(left.directory, "helper"), "utf8"));
  // As if another process had made it, which is dead.
  writeFileSync(join(dirname(left.directory), "owner"), "another life");
  // Just being made by somebody: no owner yet.
  const unfinished = join(root, "own", "greeter-1-abcdef12");
  mkdirSync(unfinished);

  await own(t, root, greeterKind());
  assert.deepEqual(left.pids.map(processAlive), [false]);
  assert.equal(processAlive(helper), false);
  assert.equal(existsSync(left.directory), false);
  assert.equal(existsSync(unfinished), true);
  assert.equal(await greetingAt(living.facts), "hello, start");
});

test("a way that fails leaves nothing, and the next one is taken", async (t) => {
  const root = directory(t);
  const greeter = await own(t, root, greeterKind(undefined, [brokenWay, ...greeterKind().ways]));
  assert.equal(greeter.way, "greeter");
  const reason = await ownInstance("greeter", greeterKind(undefined, [brokenWay]), help, root);
  assert.match(
    typeof reason === "string" ? reason : "",
    /no greeter that can be started here: broken greeter.*no luck/s,
  );
});

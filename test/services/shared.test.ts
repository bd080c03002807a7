import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { type TestContext } from "node:test";
import { processAlive } from "../../src/local-postgres/process-alive.ts";
import { onTestEnd } from "../support/cleanup.ts";
import {
  brokenWay,
  closedWay,
  greeterKind,
  greetingAt,
  slowGreeter,
  type GreeterFacts,
} from "./fixtures/greeter.ts";
import { launch, type Mark } from "./processes.ts";
import { sharedService, type Found, type Shared, type There } from "./shared.ts";

const help = { install: false, say: () => undefined };

interface Setting {
  readonly root: string;
  readonly instance: string;
  readonly shared: Shared<GreeterFacts>;
}

function setting(t: TestContext, kind = greeterKind()): Setting {
  const root = mkdtempSync(join(tmpdir(), "inbox-services-"));
  const shared = sharedService("greeter", kind, root);
  onTestEnd(t, async () => {
    await shared.end();
    await shared.leave();
    rmSync(root, { recursive: true, force: true });
  });
  return { root, instance: join(root, "greeter", "instance"), shared };
}

function there(found: Found<GreeterFacts>): There<GreeterFacts> {
  assert.ok(found.kind === "there", JSON.stringify(found));
  return found;
}

async function gone(pid: number): Promise<void> {
  for (const until = performance.now() + 10_000; processAlive(pid);) {
    assert.ok(performance.now() < until, `process ${pid} still lives`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** A process that has nothing to do with services. */
async function stranger(t: TestContext, directory: string): Promise<Mark> {
  const mark = await launch(
    { name: "stranger", program: process.execPath, args: ["--eval", "setInterval(() => undefined, 1000)"] },
    directory,
  );
  onTestEnd(t, async () => {
    process.kill(mark.pid, "SIGKILL");
    await gone(mark.pid);
  });
  return mark;
}

const useGreeter = join(import.meta.dirname, "fixtures", "use-greeter.ts");
const execArgv = ["--import", import.meta.resolve("tsx")];

/** A process that uses the service, and what it was told. */
async function user(t: TestContext, root: string) {
  const child = fork(useGreeter, [root], { execArgv, stdio: ["ignore", "inherit", "inherit", "ipc"] });
  const closed = once(child, "close");
  onTestEnd(t, async () => {
    child.kill("SIGKILL");
    await closed;
  });
  const [found] = (await once(child, "message")) as [Found<GreeterFacts>];
  return {
    found: there(found),
    async end(signal: "SIGTERM" | "SIGKILL") {
      child.kill(signal);
      await closed;
    },
  };
}

test("a service that was kept is found again by every process, and ends only when it is told to", async (t) => {
  const { root, instance, shared } = setting(t);
  const kept = there(await shared.keep(help));
  assert.deepEqual(there(await sharedService("greeter", greeterKind(), root).keep(help)).pids, kept.pids);
  const joined = await user(t, root);
  assert.deepEqual(joined.found.facts, kept.facts);
  await joined.end("SIGTERM");
  assert.equal(await greetingAt(kept.facts), "hello, start");
  const helper = Number(readFileSync(join(instance, "helper"), "utf8"));

  assert.equal(await shared.end(), true);
  await assert.rejects(greetingAt(kept.facts));
  await gone(kept.pids[0]!);
  await gone(helper);
  assert.equal(existsSync(instance), false);
  assert.equal(await shared.end(), false);
});

test("a service ends with the last process that uses it, and a killed one counts no longer", async (t) => {
  const { root, shared } = setting(t);
  const first = await user(t, root);
  const second = await user(t, root);
  const third = await user(t, root);
  assert.deepEqual(second.found.pids, first.found.pids);
  assert.equal(((await shared.look()) as { users?: number }).users, 3);
  await first.end("SIGTERM");
  await second.end("SIGKILL");
  assert.equal(await greetingAt(first.found.facts), "hello, start");
  await third.end("SIGTERM");
  await gone(first.found.pids[0]!);
});

test("what a killed service left is ended and cleared before the next one starts", async (t) => {
  const { instance, shared } = setting(t);
  const dead = there(await shared.keep(help));
  const orphan = Number(readFileSync(join(instance, "helper"), "utf8"));
  process.kill(dead.pids[0]!, "SIGKILL");
  await gone(dead.pids[0]!);
  assert.equal(processAlive(orphan), true, "its helper outlives it");

  assert.equal((await shared.look()).kind, "missing");
  const next = there(await shared.keep(help));
  await gone(orphan);
  assert.notEqual(next.pids[0], dead.pids[0]);
  // Its data went with it.
  assert.equal(await greetingAt(next.facts), "hello, start");
});

test("a service whose starter was killed on the way is waited for, not started again", async (t) => {
  const { root, instance } = setting(t);
  const slow = sharedService("greeter", slowGreeter(2_000), root);
  const starter = fork(useGreeter, [root, "2000"], {
    execArgv,
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  const closed = once(starter, "close");
  for (const until = performance.now() + 20_000; !existsSync(join(instance, "starts"));) {
    assert.ok(performance.now() < until, "it was never started");
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  starter.kill("SIGKILL");
  await closed;

  const found = there(await slow.keep(help));
  assert.equal(await greetingAt(found.facts), "hello, start");
});

test("a process that has got the id of a dead one is left alone", async (t) => {
  const { root, instance, shared } = setting(t);
  const other = await stranger(t, root);
  mkdirSync(instance, { recursive: true });
  const marks = [{ pid: other.pid, birth: "another life" }];
  writeFileSync(
    join(instance, "instance.json"),
    JSON.stringify({ way: "greeter", ports: { tcp: 1 }, marks, gentle: false }),
  );
  assert.equal((await shared.look()).kind, "missing");
  const started = there(await shared.keep(help));
  assert.equal(await greetingAt(started.facts), "hello, start");
  assert.equal(processAlive(other.pid), true);
  await shared.end();
  assert.equal(processAlive(other.pid), true);
});

test("a foreign program on the usual port is neither used nor ended, and a service of ours starts elsewhere", async (t) => {
  const foreign = createServer((socket) => socket.end("220 mail.example.com ESMTP\r\n"));
  foreign.listen(0, "127.0.0.1");
  await once(foreign, "listening");
  onTestEnd(t, () => void foreign.close());
  const { port } = foreign.address() as AddressInfo;
  const { shared } = setting(t, greeterKind({ host: "127.0.0.1", port }));

  const started = there(await shared.keep(help));
  assert.notEqual(started.facts.port, port);
  assert.equal(await shared.end(), true);
  await assert.rejects(greetingAt({ host: "127.0.0.1", port }), /220 mail/);
});

test("what already listens on the usual port and speaks the protocol is used, and never ended", async (t) => {
  const ours = createServer((socket) => socket.end("hello, I was here before"));
  ours.listen(0, "127.0.0.1");
  await once(ours, "listening");
  onTestEnd(t, () => void ours.close());
  const { port } = ours.address() as AddressInfo;
  const { shared, instance } = setting(t, greeterKind({ host: "127.0.0.1", port }));

  const found = there(await shared.keep(help));
  assert.deepEqual([found.facts.port, found.pids], [port, []]);
  assert.equal(existsSync(instance), false);
  assert.equal(await shared.end(), false);
  assert.equal(await greetingAt(found.facts), "hello, I was here before");
});

test("what the environment names is used, and nothing is started", async (t) => {
  const { shared, instance } = setting(t);
  process.env["GREETER_PORT"] = "4711";
  t.after(() => delete process.env["GREETER_PORT"]);
  const found = there(await shared.use(help));
  assert.deepEqual([found.facts.port, found.from], [4711, "the environment"]);
  assert.equal(existsSync(instance), false);
});

test("the next way is taken where one fails, and all reasons are told where all fail", async (t) => {
  const closed = closedWay("closed greeter", "there is no closed greeter");
  const open = setting(t, greeterKind(undefined, [closed, brokenWay, ...greeterKind().ways]));
  assert.equal(there(await open.shared.keep(help)).from, "greeter");

  const none = setting(t, greeterKind(undefined, [closed, brokenWay]));
  const found = await none.shared.keep(help);
  assert.equal(found.kind, "missing");
  assert.match(
    (found as { reason: string }).reason,
    /^no greeter: there is no closed greeter; broken greeter/,
  );
  assert.match((found as { reason: string }).reason, /no luck/);
  assert.equal(existsSync(none.instance), false, "nothing of the failed way is left");
});

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import test, { type TestContext } from "node:test";
import { processAlive } from "../../src/local-postgres/process-alive.ts";
import { requireOrSkip } from "../support/require-or-skip.ts";
import { speaksNats } from "./nats.ts";
import { programPath } from "./processes.ts";

const program = resolve(import.meta.dirname, "../../scripts/services.ts");

interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

type Command = (...args: readonly string[]) => Promise<Ran>;

interface Reported {
  readonly state: string;
  readonly reason?: string;
  readonly pids?: readonly number[];
  readonly kept?: boolean;
  readonly environment?: Readonly<Record<string, string>>;
}

/** The command, with services of the test's own. */
function command(t: TestContext, more: Readonly<Record<string, string>> = {}): Command {
  const root = mkdtempSync(join(tmpdir(), "inbox-command-"));
  const { NATS_URL: _nats, KAFKA_BROKERS: _kafka, ...inherited } = process.env;
  const env = { ...inherited, TEST_SERVICES_DIRECTORY: root, TEST_SERVICES_USUAL: "0", ...more };
  const run: Command = (...args) =>
    new Promise((done) => {
      execFile(
        process.execPath,
        ["--import", import.meta.resolve("tsx"), program, ...args],
        { env, cwd: resolve(import.meta.dirname, "../..") },
        (error, stdout, stderr) => done({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
      );
    });
  t.after(async () => {
    await run("down", "nats", "kafka");
    rmSync(root, { recursive: true, force: true });
  });
  return run;
}

const reportOf = ({ stdout }: Ran, name: string): Reported =>
  (JSON.parse(stdout) as Record<string, Reported>)[name]!;

async function hasNats(t: TestContext): Promise<boolean> {
  return requireOrSkip(t, programPath("nats-server") !== undefined, "nats-server is not installed");
}

test("up starts a service and leaves it running, status tells of it, down ends it", async (t) => {
  if (!(await hasNats(t))) return;
  const services = command(t);
  const before = await services("status", "nats", "--json");
  assert.deepEqual([before.code, reportOf(before, "nats").state], [0, "down"]);

  const up = await services("up", "nats", "--json");
  assert.equal(up.code, 0, up.stderr);
  const started = reportOf(up, "nats");
  assert.equal(started.state, "up");
  const { hostname, port } = new URL(started.environment!["NATS_URL"]!);
  await speaksNats(hostname, Number(port));
  const again = reportOf(await services("up", "nats", "--json"), "nats");
  assert.deepEqual([again.pids, again.environment], [started.pids, started.environment]);

  const status = await services("status", "nats", "--json");
  assert.equal(status.code, 0);
  const seen = reportOf(status, "nats");
  assert.deepEqual([seen.state, seen.kept, seen.pids], ["up", true, started.pids]);

  const down = await services("down", "nats", "--json");
  assert.deepEqual([down.code, reportOf(down, "nats").reason], [0, "ended"]);
  assert.equal(processAlive(started.pids![0]!), false);
  const twice = await services("down", "nats", "--json");
  assert.deepEqual([twice.code, reportOf(twice, "nats").reason], [0, "nothing was started here"]);
});

test("up prints lines that a shell can evaluate, and says the rest on stderr", async (t) => {
  if (!(await hasNats(t))) return;
  const services = command(t);
  const { code, stdout, stderr } = await services("up", "nats");
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^export NATS_URL='nats:\/\/127\.0\.0\.1:\d+'\n$/);
  assert.match(stderr, /^nats: up \(nats-server\)$/m);
});

test("what the environment names is told, and down does not end it", async (t) => {
  const services = command(t, { NATS_URL: "nats://127.0.0.1:1" });
  const up = reportOf(await services("up", "nats", "--json"), "nats");
  assert.deepEqual([up.state, up.pids, up.environment], ["up", [], { NATS_URL: "nats://127.0.0.1:1" }]);
  assert.equal(reportOf(await services("down", "nats", "--json"), "nats").reason, "nothing was started here");
});

test("up ends with 1 and the reason where a service cannot be had", async (t) => {
  const services = command(t, { PATH: "/nonexistent" });
  const { code, stdout, stderr } = await services("up", "kafka", "--json");
  assert.equal(code, 1);
  const report = reportOf({ code, stdout, stderr }, "kafka");
  assert.equal(report.state, "missing");
  assert.match(report.reason!, /there is no java/);
  assert.match(stderr, /^kafka: missing, no kafka: .*there is no java/m);
});

const misuses: readonly (readonly [args: readonly string[], says: RegExp])[] = [
  [[], /There is no command/],
  [["start"], /There is no command start/],
  [["up", "kafak"], /There is no service kafak for up/],
  [["down", "kafka-confluent"], /There is no service kafka-confluent for down/],
  [["up", "--jsn"], /Unknown option '--jsn'/],
];

for (const [args, says] of misuses) {
  test(`wrong usage ends with 2 and says why: ${args.join(" ") || "(nothing)"}`, async (t) => {
    const { code, stdout, stderr } = await command(t)(...args);
    assert.deepEqual([code, stdout], [2, ""]);
    assert.match(stderr, says);
    assert.match(stderr, /^Usage: npm run services/m);
  });
}

test("--help names every service and its variable", async (t) => {
  const { code, stdout } = await command(t)("--help");
  assert.equal(code, 0);
  for (const name of Object.keys((await import("./kinds.ts")).kinds))
    assert.match(stdout, new RegExp(`^  ${name} `, "m"));
  const script = readFileSync(program, "utf8");
  for (const [, variable] of script.matchAll(/: "([A-Z_]+)",$/gm))
    assert.ok(stdout.includes(variable!), variable);
});

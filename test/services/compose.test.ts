import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import test, { type TestContext } from "node:test";
import { onTestEnd } from "../support/cleanup.ts";
import { fromCompose } from "./compose.ts";
import { greetingAt, type GreeterFacts } from "./fixtures/greeter.ts";
import { kinds } from "./kinds.ts";
import { ownInstance } from "./own.ts";

// Shows which commands are given in which order, by a program that stands in for Docker. No engine is needed, and none is
// tried: that the images of compose.yaml do their work is seen only where one runs.

const host = "127.0.0.1";
const help = { install: false, say: () => undefined };

const kind = {
  given: () => undefined,
  ways: [
    fromCompose<GreeterFacts>({
      service: "nats",
      ports: { tcp: "NATS_PORT" },
      facts: ({ tcp }) => ({ host, port: tcp!, greeting: "hello" }),
      check: async (facts) => void (await greetingAt(facts)),
      files: { "/etc/greeter.conf": "polite = true\n" },
    }),
  ],
};

/** A machine with something called docker. These tests run one after the other: the environment is theirs. */
function machine(t: TestContext): { readonly root: string; calls(): readonly string[] } {
  const root = mkdtempSync(join(tmpdir(), "inbox-docker-"));
  const docker = join(root, "docker");
  const fixture = join(import.meta.dirname, "fixtures", "docker.ts");
  writeFileSync(
    docker,
    `#!/bin/sh\nexec '${process.execPath}' --import '${import.meta.resolve("tsx")}' '${fixture}' "$@"\n`,
  );
  chmodSync(docker, 0o755);
  const before = { PATH: process.env["PATH"], DOCKER_CONFIG: process.env["DOCKER_CONFIG"] };
  process.env["PATH"] = `${root}${delimiter}${before.PATH}`;
  process.env["DOCKER_CONFIG"] = root;
  onTestEnd(t, () => {
    for (const [name, value] of Object.entries(before)) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
    rmSync(root, { recursive: true, force: true });
  });
  return {
    root,
    calls: () =>
      readFileSync(join(root, "calls.log"), "utf8")
        .trim()
        .split("\n")
        // Without the project and the files, which come first.
        .map((call) => call.replace(/ -p \S+( -f \S+)+/, "")),
  };
}

test("a container is started, killed with its data kept, stopped, and removed with all it has", async (t) => {
  const { root, calls } = machine(t);
  const own = await ownInstance("greeter", kind, help, root);
  assert.ok(typeof own !== "string", JSON.stringify(own));
  onTestEnd(t, () => own.remove());
  assert.equal(own.way, "nats by Docker Compose");
  assert.equal(readFileSync(join(own.directory, "greeter.conf"), "utf8"), "polite = true\n");
  const override = JSON.parse(readFileSync(join(own.directory, "override.yaml"), "utf8")) as object;
  const source = join(own.directory, "greeter.conf");
  const volumes = [{ type: "bind", source, target: "/etc/greeter.conf", read_only: true }];
  assert.deepEqual(override, { services: { nats: { volumes } } });

  await own.kill();
  await assert.rejects(greetingAt(own.facts));
  await own.start();
  await own.restart();
  assert.equal(await greetingAt(own.facts), "hello, start start start");
  await own.remove();
  await assert.rejects(greetingAt(own.facts));
  const up = "compose up --no-log-prefix nats";
  assert.deepEqual(
    calls().filter((call) => call === up || call.includes("down")),
    [up, up, up, "compose down --volumes --timeout 0"],
  );
});

test("a container that outlived whoever started it is taken down by the next one", async (t) => {
  const { root, calls } = machine(t);
  const left = await ownInstance("greeter", kind, help, root);
  assert.ok(typeof left !== "string", JSON.stringify(left));
  process.kill(left.pids[0]!, "SIGKILL");
  writeFileSync(join(dirname(left.directory), "owner"), "another life");
  assert.equal(await greetingAt(left.facts), "hello, start");

  const next = await ownInstance("greeter", kind, help, root);
  assert.ok(typeof next !== "string", JSON.stringify(next));
  onTestEnd(t, () => next.remove());
  await assert.rejects(greetingAt(left.facts));
  assert.equal(existsSync(left.directory), false);
  assert.ok(calls().includes("compose down --volumes --timeout 0"));
});

test("without an engine, or without docker, the way is closed with the reason", async (t) => {
  const { root } = machine(t);
  writeFileSync(join(root, "no-engine"), "");
  assert.match(
    JSON.stringify(await ownInstance("greeter", kind, help, root)),
    /no engine answers docker info/,
  );
  process.env["PATH"] = "/nonexistent";
  assert.match(JSON.stringify(await ownInstance("greeter", kind, help, root)), /there is no docker/);
});

test("compose.yaml has the services that are looked for in it, with ports of loopback only", () => {
  const text = readFileSync(join(import.meta.dirname, "compose.yaml"), "utf8");
  const declared = [...text.matchAll(/^ {2}([a-z-]+):$/gm)].map(([, name]) => name);
  const wanted = Object.values(kinds)
    .flatMap(({ ways }) => ways.map(({ name }) => name))
    .flatMap((name) => (/ by Docker Compose$/.test(name) ? [name.split(" ")[0]] : []));
  assert.deepEqual(declared.toSorted(), wanted.toSorted());
  const ports = [...text.matchAll(/^ {6}- "(.*)"$/gm)].map(([, port]) => port!);
  assert.ok(ports.length >= declared.length);
  for (const port of ports) assert.match(port, /^127\.0\.0\.1:\$\{[A-Z_]+:-\d+\}:\d+$/);
});

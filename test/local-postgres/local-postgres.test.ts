import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import test from "node:test";
import pg from "pg";
import { startLocalPostgres } from "../../src/local-postgres/local-postgres.ts";
import { gone, livingPostmaster } from "../../src/local-postgres/postmaster.ts";
import { processAlive } from "../../src/local-postgres/process-alive.ts";
import { onTestEnd, type Scope } from "../support/cleanup.ts";
import { testBinaries } from "../support/server.ts";

interface Held {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly port: number;
  readonly joined: boolean;
  readonly url: string;
  /** The holder's own process id. */
  readonly self: number;
}

const holder = join(import.meta.dirname, "holder.ts");
const binaries = testBinaries();

function ownDirectory(t: Scope): string {
  const directory = mkdtempSync(join(tmpdir(), "inbox-local-postgres-"));
  onTestEnd(t, () => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

async function hold(t: Scope, directory: string, mode = "hold"): Promise<Held> {
  const child = spawn(process.execPath, ["--import", "tsx", holder, directory, mode], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  onTestEnd(t, async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  });
  for await (const line of createInterface({ input: child.stdout })) {
    return { ...(JSON.parse(line) as Omit<Held, "child">), child };
  }
  throw new Error("The holder ended without a word.");
}

async function query(url: string, text: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => undefined);
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(text)).rows;
  } finally {
    await client.end();
  }
}

test("data outlives a stop, and the second start finds the directory made", async (t) => {
  const directory = ownDirectory(t);
  const first = await startLocalPostgres({ directory, binaries });
  await query(first.url, "create table kept as select 42 as answer");
  await first.stop();
  assert.equal(processAlive(first.pid), false);

  await using second = await startLocalPostgres({ directory, binaries });
  assert.equal(second.joined, false);
  assert.deepEqual(await query(second.url, "select answer from kept"), [{ answer: 42 }]);
});

test("it listens on the loopback address only, asks for a password, and keeps fsync on", async (t) => {
  await using server = await startLocalPostgres({
    directory: ownDirectory(t),
    binaries,
    settings: { work_mem: "5MB" },
  });
  const shown = await query(
    server.url,
    "select name, setting from pg_settings where name in ('listen_addresses', 'fsync', 'work_mem', 'unix_socket_directories') order by name",
  );
  assert.deepEqual(shown, [
    { name: "fsync", setting: "on" },
    { name: "listen_addresses", setting: "127.0.0.1" },
    { name: "unix_socket_directories", setting: "" },
    { name: "work_mem", setting: "5120" },
  ]);
  const wrong = server.url.replace(/:[0-9a-f]+@/, ":wrong@");
  assert.notEqual(wrong, server.url);
  await assert.rejects(query(wrong, "select 1"), { code: "28P01" });
  assert.equal(statSync(join(server.directory, "password")).mode & 0o077, 0);
});

test("what was committed is there after the server was killed and restarted on the same port", async (t) => {
  await using server = await startLocalPostgres({ directory: ownDirectory(t), binaries });
  const { url, pid } = server;
  await query(url, "create table kept as select generate_series(1, 1000) as id");
  await server.kill();
  assert.equal(processAlive(pid), false);
  await server.restart();
  assert.equal(server.url, url);
  assert.notEqual(server.pid, pid);
  assert.deepEqual(await query(url, "select count(*)::int as kept from kept"), [{ kept: 1000 }]);
});

test("five processes that start at once in an empty directory share one server, and the last one stops it", async (t) => {
  const directory = ownDirectory(t);
  const held = await Promise.all(Array.from({ length: 5 }, () => hold(t, directory)));
  assert.equal(new Set(held.map(({ pid }) => pid)).size, 1);
  assert.equal(held.filter(({ joined }) => !joined).length, 1);
  const { pid, url } = held[0]!;
  for (const { child } of held.slice(0, 4)) {
    child.stdin!.end();
    await once(child, "exit");
  }
  assert.deepEqual(await query(url, "select 1 as one"), [{ one: 1 }]);
  held[4]!.child.stdin!.end();
  assert.equal(await gone(pid, 20_000), true);
});

test("the orphan of a killed process is joined, never doubled, and then stopped", async (t) => {
  const directory = ownDirectory(t);
  const held = await hold(t, directory);
  await query(held.url, "create table kept as select 1 as id");
  process.kill(held.self, "SIGKILL");
  await once(held.child, "exit");
  assert.equal(processAlive(held.pid), true);

  const notices: string[] = [];
  const server = await startLocalPostgres({ directory, binaries, onNotice: (text) => notices.push(text) });
  assert.equal(server.pid, held.pid);
  assert.equal(server.joined, true);
  assert.match(notices.join("\n"), /already runs/);
  assert.deepEqual(await query(server.url, "select id from kept"), [{ id: 1 }]);
  await server.stop();
  assert.equal(processAlive(held.pid), false);
  assert.deepEqual(readdirSync(join(directory, "users")), []);
});

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  test(`the server stops when its process ends by ${signal}, and the process still ends by that signal`, async (t) => {
    const held = await hold(t, ownDirectory(t));
    process.kill(held.self, signal);
    const [code, by] = (await once(held.child, "exit")) as [number | null, string | null];
    assert.equal(await gone(held.pid, 20_000), true);
    assert.deepEqual([code, by], [null, signal]);
  });
}

test("the server stops when its process has nothing more to do", async (t) => {
  const held = await hold(t, ownDirectory(t), "leave");
  await once(held.child, "exit");
  assert.equal(await gone(held.pid, 20_000), true);
});

test("a lock and a draft that a killed process left stop nobody", async (t) => {
  const directory = ownDirectory(t);
  const dead = spawn(process.execPath, ["-e", ""]);
  await once(dead, "exit");
  writeFileSync(join(directory, "lock"), JSON.stringify({ pid: dead.pid, birth: "1@x", token: "t" }));
  writeFileSync(join(directory, "lock.break"), JSON.stringify({ pid: dead.pid, birth: "1@x", token: "u" }));
  mkdirSync(join(directory, "data.half"));
  await using server = await startLocalPostgres({ directory, binaries });
  assert.deepEqual(await query(server.url, "select 1 as one"), [{ one: 1 }]);
  assert.equal(existsSync(join(directory, "data.half")), false);
});

for (const [name, script] of [
  ["another program", "echo $$; exec sleep 60"],
  // Its parent became a program that waits for no child.
  ["a zombie", "sleep 0 & echo $!; exec sleep 60"],
] as const) {
  test(`a process id that now belongs to ${name} is not taken for a server, and is no obstacle`, async (t) => {
    if (process.platform !== "linux") return t.skip("only Linux tells what a process runs");
    const directory = ownDirectory(t);
    const first = await startLocalPostgres({ directory, binaries });
    await query(first.url, "create table kept as select 42 as answer");
    await first.kill();
    const data = join(first.directory, "data");
    // As PostgreSQL's own user: it minds no process of another one.
    const { uid, gid } = statSync(data);
    const child = spawn("sh", ["-c", script], {
      ...(process.getuid?.() === 0 ? { uid, gid } : {}),
      cwd: "/",
      stdio: ["ignore", "pipe", "ignore"],
    });
    onTestEnd(t, () => void child.kill("SIGKILL"));
    const [chunk] = (await once(child.stdout, "data")) as [Buffer];
    const pid = Number(chunk.toString());
    if (name === "a zombie") await gone(pid, 10_000);
    process.kill(pid, 0);

    const path = join(data, "postmaster.pid");
    const lines = readFileSync(path, "utf8").split("\n");
    writeFileSync(path, [String(pid), ...lines.slice(1)].join("\n"));
    assert.equal(livingPostmaster(data), undefined);
    const second = await startLocalPostgres({ directory, binaries });
    assert.notEqual(second.pid, pid);
    assert.deepEqual(await query(second.url, "select answer from kept"), [{ answer: 42 }]);
    await second.stop();
    await first.stop();
  });
}

test("data of another major version is refused by name, and left alone", async (t) => {
  const directory = ownDirectory(t);
  const server = await startLocalPostgres({ directory, binaries });
  await server.stop();
  writeFileSync(join(server.directory, "data", "PG_VERSION"), "9\n");
  await assert.rejects(startLocalPostgres({ directory, binaries }), {
    code: "local-postgres",
    message: /was made by PostgreSQL 9, the programs are of PostgreSQL \d+/,
  });
});

test("a wrong setting fails with the server's own words", async (t) => {
  await assert.rejects(
    startLocalPostgres({ directory: ownDirectory(t), binaries, settings: { work_mem: "much" } }),
    {
      code: "local-postgres",
      message: /invalid value for parameter "work_mem"/,
    },
  );
});

test("started by root below a directory that is root's alone, the data lives elsewhere and a person is told", async (t) => {
  if (process.getuid?.() !== 0) return t.skip("only root has to run PostgreSQL as somebody else");
  const closed = ownDirectory(t);
  chmodSync(closed, 0o700);
  const directory = join(closed, "below");
  const notices: string[] = [];
  const server = await startLocalPostgres({ directory, binaries, onNotice: (text) => notices.push(text) });
  onTestEnd(t, () => rmSync(server.directory, { recursive: true, force: true }));
  assert.equal(server.directory.startsWith(closed), false);
  assert.match(notices.join("\n"), new RegExp(`may not enter ${closed}.*its data is in ${server.directory}`));
  await query(server.url, "create table kept as select 7 as id");
  await server.stop();
  await using again = await startLocalPostgres({ directory, binaries });
  assert.deepEqual(await query(again.url, "select id from kept"), [{ id: 7 }]);
});

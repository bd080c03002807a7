import { spawn } from "node:child_process";
import {
  closeSync,
  openSync,
  readFileSync,
  readlinkSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { createServer, connect } from "node:net";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { InboxError } from "../errors.ts";
import type { PostgresBinaries } from "./binaries.ts";
import { processAlive, processCommand } from "./process-alive.ts";
import type { RunAs } from "./run-as.ts";

/** A server process, as its own lock file `postmaster.pid` describes it. */
export interface Postmaster {
  readonly pid: number;
  readonly port: number;
  readonly status: string;
}

export interface PostmasterStart {
  readonly binaries: PostgresBinaries;
  /** The data directory, as a real path. */
  readonly data: string;
  /** 0: a free one that the system chooses. */
  readonly port: number;
  readonly settings: Readonly<Record<string, string>>;
  readonly runAs: RunAs | undefined;
  readonly logPath: string;
  readonly signal: AbortSignal;
}

const pollMs = 10;
/** Above every system's highest process id. */
const impossiblePid = 4_194_304;
const maxLogBytes = 10 * 1024 * 1024;

/** The living server of a data directory, if there is one. */
export function livingPostmaster(data: string): Postmaster | undefined {
  const lines = lockFileLines(data);
  if (lines === undefined) return undefined;
  const pid = Math.abs(Number(lines[0]));
  if (!processAlive(pid) || !isPostmasterOf(pid, data)) return undefined;
  return { pid, port: Number(lines[3] ?? 0), status: (lines[7] ?? "").trim() };
}

/** Waits until the server that lives in the directory takes connections, or is gone (`undefined`). */
export async function readyPostmaster(data: string, signal: AbortSignal): Promise<Postmaster | undefined> {
  for (;;) {
    const postmaster = livingPostmaster(data);
    if (postmaster === undefined) return undefined;
    if (postmaster.status === "ready" && (await answersAsPostgres(postmaster.port))) return postmaster;
    if (signal.aborted) {
      throw new InboxError(
        "local-postgres",
        `PostgreSQL (process ${postmaster.pid}) in ${data} runs but does not take connections.`,
      );
    }
    await sleep(pollMs);
  }
}

/** Starts a server in a directory in which none lives, and waits until it takes connections. */
export async function startPostmaster(start: PostmasterStart): Promise<Postmaster> {
  for (;;) {
    disownDeadLock(start.data);
    const attempt = await startOnce(start, start.port === 0 ? await freePort() : start.port);
    if (typeof attempt !== "string") return attempt;
    // A port is free when we ask and may be taken a moment later; what a killed server's children still hold is let
    // go within seconds. Both end by trying again.
    const transient =
      /could not create any TCP\/IP sockets|pre-existing shared memory block|is still in use/.test(attempt);
    if (!transient || start.signal.aborted) {
      throw new InboxError(
        "local-postgres",
        `PostgreSQL did not start in ${start.data}: ${attempt} (log: ${start.logPath})`,
      );
    }
    await sleep(100);
  }
}

/** Shuts the server down, its clients' transactions rolled back, and waits until it is gone. */
export async function stopPostmaster(data: string, timeoutMs = 30_000): Promise<void> {
  const postmaster = livingPostmaster(data);
  if (postmaster === undefined) return;
  signalPostmaster(postmaster.pid, "SIGINT");
  if (await gone(postmaster.pid, timeoutMs)) return;
  signalPostmaster(postmaster.pid, "SIGQUIT");
  if (await gone(postmaster.pid, timeoutMs)) return;
  throw new InboxError("local-postgres", `PostgreSQL (process ${postmaster.pid}) in ${data} does not stop.`);
}

/** Sends a signal to a process that may be gone already. */
export function signalPostmaster(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/** Whether the process ended within the time. */
export async function gone(pid: number, timeoutMs: number): Promise<boolean> {
  for (const deadline = performance.now() + timeoutMs; processAlive(pid); await sleep(pollMs)) {
    if (performance.now() > deadline) return false;
  }
  return true;
}

/**
 * PostgreSQL refuses to start while its lock file names a process that exists: also a zombie that nobody reaps, or
 * another program that got the id after a reboot. Such an id is replaced by one that cannot exist. The file itself must
 * stay: by what else is in it, PostgreSQL sees whether children of the dead server still use the data.
 */
function disownDeadLock(data: string): void {
  const lines = lockFileLines(data);
  if (lines === undefined || livingPostmaster(data) !== undefined) return;
  writeFileSync(join(data, "postmaster.pid"), [String(impossiblePid), ...lines.slice(1)].join("\n"));
}

function lockFileLines(data: string): string[] | undefined {
  try {
    return readFileSync(join(data, "postmaster.pid"), "utf8").split("\n");
  } catch {
    return undefined;
  }
}

/** The server once it is ready, or the reason why it ended. */
async function startOnce(start: PostmasterStart, port: number): Promise<Postmaster | string> {
  if ((statSync(start.logPath, { throwIfNoEntry: false })?.size ?? 0) > maxLogBytes)
    truncateSync(start.logPath);
  const log = openSync(start.logPath, "a", 0o600);
  const logStart = statSync(start.logPath).size;
  const settings = Object.entries({
    ...start.settings,
    listen_addresses: "127.0.0.1",
    unix_socket_directories: "",
    port: String(port),
  });
  const child = spawn(
    start.binaries.postgres,
    ["-D", start.data, ...settings.flatMap(([name, value]) => ["-c", `${name}=${value}`])],
    {
      ...start.runAs,
      cwd: start.data,
      env: postgresEnvironment(),
      // In a session of its own, so that Ctrl-C at the terminal reaches us and not the server under work in hand.
      detached: true,
      stdio: ["ignore", log, log],
    },
  );
  closeSync(log);
  let ended: string | undefined;
  child.once("error", (error) => (ended = error.message));
  child.once("exit", (code, signal) => (ended ??= `it ended with ${signal ?? code}`));
  child.unref();
  while (ended === undefined) {
    const postmaster = livingPostmaster(start.data);
    if (postmaster?.pid === child.pid && postmaster?.status === "ready") return postmaster;
    if (start.signal.aborted) {
      if (child.pid !== undefined) signalPostmaster(child.pid, "SIGINT");
      return "it was not ready in time";
    }
    await sleep(pollMs);
  }
  return logTail(start.logPath, logStart) || ended;
}

/** Without what steers a PostgreSQL client or server from outside, and with messages in English. */
export function postgresEnvironment(): NodeJS.ProcessEnv {
  const own = Object.entries(process.env).filter(([name]) => !/^(PG|LC_|LANG|TZ$)/.test(name));
  return { ...Object.fromEntries(own), LC_ALL: "C" };
}

function logTail(path: string, from: number): string {
  const lines = readFileSync(path).subarray(from).toString("utf8").trim().split("\n");
  return lines.slice(-6).join("; ");
}

function isPostmasterOf(pid: number, data: string): boolean {
  const command = processCommand(pid);
  if (command === undefined) return true;
  if (!/^(postgres|postmaster)/.test(basename(command[0] ?? ""))) return false;
  try {
    // A server works inside its data directory.
    return readlinkSync(`/proc/${pid}/cwd`) === data;
  } catch {
    return true;
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === "string")
    throw new InboxError("local-postgres", "No free port on 127.0.0.1.");
  return address.port;
}

/** PostgreSQL, and nothing else, answers the eight bytes of an SSL request with one letter. */
async function answersAsPostgres(port: number): Promise<boolean> {
  const request = Buffer.from([0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f]);
  return await new Promise((resolve) => {
    const socket = connect({ host: "127.0.0.1", port, timeout: 2_000 });
    const settle = (answer: boolean): void => {
      socket.destroy();
      resolve(answer);
    };
    socket.once("connect", () => socket.write(request));
    socket.once("data", (bytes) => settle(/^[SN]/.test(bytes.toString("latin1"))));
    socket.once("timeout", () => settle(false));
    socket.once("error", () => settle(false));
    socket.once("close", () => settle(false));
  });
}

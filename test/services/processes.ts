import { spawn } from "node:child_process";
import { closeSync, existsSync, openSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { delimiter, join, sep } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { processAlive, processBirth, sameProcessAlive } from "../../src/local-postgres/process-alive.ts";
import type { Command } from "./way.ts";

/** A process that we started; the birth tells it from a later one with the same id. */
export interface Mark {
  readonly pid: number;
  readonly birth: string;
}

const inherited = ["PATH", "HOME", "LANG", "TMPDIR", "JAVA_HOME", "TEMP", "SYSTEMROOT"] as const;

/** Starts a command in the background, in a process group of its own, working in `directory`, with its log there. */
export async function launch(command: Command, directory: string): Promise<Mark> {
  const log = openSync(join(directory, `${command.name}.log`), "a", 0o600);
  const child = spawn(command.program, command.args, {
    cwd: directory,
    env: environmentOf(command.env),
    // Ctrl-C at the terminal reaches us, not the service; and one signal to the group reaches all its processes.
    detached: true,
    stdio: ["ignore", log, log],
  });
  closeSync(log);
  child.unref();
  await new Promise<void>((resolve, reject) => {
    child.once("spawn", resolve);
    child.once("error", reject);
  });
  const { pid } = child;
  if (pid === undefined) throw new Error(`${command.program} was not started.`);
  return { pid, birth: processBirth(pid) };
}

/** The environment of a service's programs: a few variables of this process, and their own. */
export function environmentOf(own: Command["env"] = {}): NodeJS.ProcessEnv {
  const few = inherited.map((name) => [name, process.env[name]] as const);
  return Object.fromEntries([...few, ...Object.entries(own)].filter(([, value]) => value !== undefined));
}

export const alive = (mark: Mark): boolean => sameProcessAlive(mark.pid, mark.birth);

/**
 * Sends a signal to all processes of the group that a mark leads. Where the leader is dead, only to those that work in
 * `directory`: nobody else's process does, and the leader's id may be another's by now.
 */
export function signalGroup(mark: Mark, directory: string, signal: NodeJS.Signals): void {
  if (alive(mark)) return send(-mark.pid, signal);
  for (const pid of membersIn(mark, directory)) send(pid, signal);
}

/** Sends a signal to the leader alone, which passes it on as it sees fit. */
export function signalLeader(mark: Mark, signal: NodeJS.Signals): void {
  if (alive(mark)) send(mark.pid, signal);
}

/** Whether any process of the group lives. */
export const groupAlive = (mark: Mark, directory: string): boolean =>
  alive(mark) || membersIn(mark, directory).length > 0;

/** Whether the whole group ended within the time. */
export async function groupGone(mark: Mark, directory: string, timeoutMs: number): Promise<boolean> {
  for (const deadline = performance.now() + timeoutMs; groupAlive(mark, directory); await sleep(20)) {
    if (performance.now() > deadline) return false;
  }
  return true;
}

/** Where a program is, on the PATH or where systems keep their daemons. */
export function programPath(name: string, ...more: readonly string[]): string | undefined {
  const directories = (process.env["PATH"] ?? "").split(delimiter).filter((directory) => directory !== "");
  return [...directories, "/usr/sbin", "/usr/local/sbin", ...more]
    .map((directory) => join(directory, name))
    .find((path) => existsSync(path));
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

function membersIn(mark: Mark, directory: string): number[] {
  if (process.platform !== "linux") return [];
  return readdirSync("/proc")
    .map(Number)
    .filter((pid) => Number.isInteger(pid) && groupOf(pid) === mark.pid && processAlive(pid))
    .filter((pid) => {
      try {
        const at = readlinkSync(`/proc/${pid}/cwd`);
        return at === directory || at.startsWith(directory + sep);
      } catch {
        return false;
      }
    });
}

function groupOf(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[2]);
  } catch {
    return undefined;
  }
}

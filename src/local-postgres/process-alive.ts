import { readFileSync } from "node:fs";

/**
 * What tells one process from a later one that got the same id. On Linux the start time in clock ticks since boot and
 * the boot's id; elsewhere `""`, and the id alone has to do.
 */
export function processBirth(pid: number): string {
  const stat = readStat(pid);
  if (stat === undefined) return "";
  return `${stat.startTicks}@${bootId()}`;
}

/** Whether a process with this id runs. A zombie does not; one of another user does. */
export function processAlive(pid: number): boolean {
  if (!Number.isSafeInteger(pid) || pid <= 0) return false;
  try {
    process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EPERM") return false;
  }
  // Where nothing reaps orphans (a container whose first process is no init) a dead postmaster stays as a zombie.
  const state = readStat(pid)?.state;
  return state !== "Z" && state !== "X";
}

/** Whether the very process that had this id and birth still runs. */
export function sameProcessAlive(pid: number, birth: string): boolean {
  if (!processAlive(pid)) return false;
  return birth === "" || processBirth(pid) === birth;
}

/** The command line of a process, or `undefined` where the system does not tell. */
export function processCommand(pid: number): readonly string[] | undefined {
  if (process.platform !== "linux") return undefined;
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
  } catch {
    return undefined;
  }
}

function readStat(pid: number): { state: string; startTicks: string } | undefined {
  if (process.platform !== "linux") return undefined;
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The second field is the command's name in parentheses and may hold spaces and parentheses itself.
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return { state: fields[0] ?? "", startTicks: fields[19] ?? "" };
  } catch {
    return undefined;
  }
}

function bootId(): string {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    return "";
  }
}

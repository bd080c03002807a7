import { readdirSync, readFileSync } from "node:fs";

// Where several share a machine, the rate of a run says what was left over for it; processor time says what it took.

/** Processor time in milliseconds that a process and all it started have used, the ended ones included. */
export function processorMs(pid: number): number {
  try {
    return stat(pid).ownMs + childrenMs(pid);
  } catch {
    // Only Linux has /proc.
    return Number.NaN;
  }
}

/** The process that started this one. */
export const parentOf = (pid: number): number => stat(pid).parent;

const tickMs = 10;

function stat(pid: number): { readonly parent: number; readonly ownMs: number } {
  const text = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The name of the program, in parentheses, may hold anything.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
  return { parent: Number(fields[1]), ownMs: ticks * tickMs };
}

/** Of processes that end while they are looked at, the parent says what they used. */
const childrenMs = (pid: number): number =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .reduce((sum, name) => {
      try {
        const { parent, ownMs } = stat(Number(name));
        return parent === pid ? sum + ownMs : sum;
      } catch {
        return sum;
      }
    }, 0);

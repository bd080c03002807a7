import { randomUUID } from "node:crypto";
import { linkSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { processBirth, sameProcessAlive } from "./process-alive.ts";

/** Releases the lock. Twice is harmless. */
export type Unlock = () => void;

/**
 * Takes a lock that is a file, or returns `undefined` while a living process holds it. The lock of a dead process is
 * broken.
 */
export function tryLock(path: string): Unlock | undefined {
  const mine = JSON.stringify({ pid: process.pid, birth: processBirth(process.pid), token: randomUUID() });
  const draft = `${path}.${process.pid}.${randomUUID()}`;
  writeFileSync(draft, mine, { mode: 0o600 });
  try {
    // A link appears with its whole content or not at all, so no reader sees a half-written lock.
    linkSync(draft, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    if (!breakIfStale(path)) return undefined;
    try {
      linkSync(draft, path);
    } catch (second) {
      if ((second as NodeJS.ErrnoException).code === "EEXIST") return undefined;
      throw second;
    }
  } finally {
    rmSync(draft, { force: true });
  }
  let held = true;
  return () => {
    if (held) rmSync(path, { force: true });
    held = false;
  };
}

/** Waits for the lock. Rejects with the `signal`'s reason. */
export async function lock(path: string, signal: AbortSignal): Promise<Unlock> {
  for (;;) {
    const unlock = tryLock(path);
    if (unlock !== undefined) return unlock;
    signal.throwIfAborted();
    await sleep(15 + Math.random() * 20);
  }
}

/**
 * Two processes may find the same stale lock. If both simply removed it, the second would remove the lock that the
 * first took in between; so a lock is removed only under a lock of its own, after it has been read again.
 */
function breakIfStale(path: string): boolean {
  if (!isStale(path)) return false;
  const unlock = tryLock(`${path}.break`);
  if (unlock === undefined) return false;
  try {
    if (isStale(path)) rmSync(path, { force: true });
    return true;
  } finally {
    unlock();
  }
}

function isStale(path: string): boolean {
  let owner: { pid?: unknown; birth?: unknown };
  try {
    owner = JSON.parse(readFileSync(path, "utf8")) as typeof owner;
  } catch (error) {
    // Gone in the meantime: the next attempt will tell. Unreadable: no process of ours wrote it like that.
    return (error as NodeJS.ErrnoException).code === undefined;
  }
  if (typeof owner.pid !== "number" || typeof owner.birth !== "string") return true;
  return !sameProcessAlive(owner.pid, owner.birth);
}

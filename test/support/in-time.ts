import { setTimeout as sleep } from "node:timers/promises";

const patienceMs = 60_000;

/** What is the case instead of what is waited for; asked only when it did not come. */
export type Seen = () => unknown;

/**
 * Settles as `what` does; rejects after 60 s, or the time given, with what was waited for and what is seen instead, so
 * that a failure on another machine tells its cause.
 */
export async function inTime<T>(
  waitedFor: string,
  what: Promise<T>,
  seen?: Seen,
  ms: number = patienceMs,
): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => (timer = setTimeout(resolve, ms, undefined)));
  const came = what.then((value) => ({ value }));
  const first = await Promise.race([came, late]).finally(() => clearTimeout(timer));
  if (first === undefined) throw await lateError(waitedFor, ms, seen);
  return first.value;
}

/** Asks until it holds; rejects as `inTime` does, with what was answered last. */
export async function until(
  waitedFor: string,
  ask: () => Promise<{ readonly holds: boolean; readonly answer?: unknown }>,
  { ms = patienceMs, seen }: { readonly ms?: number | undefined; readonly seen?: Seen | undefined } = {},
): Promise<void> {
  const deadline = performance.now() + ms;
  for (;;) {
    const { holds, answer } = await ask();
    if (holds) return;
    if (performance.now() > deadline) throw await lateError(waitedFor, ms, seen ?? (() => answer));
    await sleep(5);
  }
}

async function lateError(waitedFor: string, ms: number, seen: Seen = () => undefined): Promise<Error> {
  const instead = await seen();
  const text = typeof instead === "string" ? instead : JSON.stringify(instead, null, 2);
  return new Error(`Waited ${ms / 1_000} s for this: ${waitedFor}. Seen instead: ${text}`);
}

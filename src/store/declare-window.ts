import type { CleanupStore } from "./cleanup.ts";

/**
 * Stores how long a process wants a consumer's identities kept, in milliseconds. The longest of all wins: whoever differs
 * is told by `warn`. Resolves with what holds, `undefined` for ever. Rejects if the database is away.
 */
export async function declareWindow(
  store: Pick<CleanupStore, "declareWindow">,
  consumer: string,
  windowMs: number,
  warn: (text: string) => void,
): Promise<number | undefined> {
  const held = await store.declareWindow(consumer, windowMs);
  if (held === windowMs) return held;
  const holds = held === undefined ? "they are kept for ever" : `${held} ms holds`;
  warn(
    `Identities of ${JSON.stringify(consumer)}: this process wants them kept for ${windowMs} ms, but ${holds}. ` +
      "The longest window wins; another one is set with: inbox retention window",
  );
  return held;
}

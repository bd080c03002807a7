import type { Statement } from "../statement.ts";
import type { Lease } from "../pending.ts";
import { hexArray, numberArray } from "./array.ts";

/** A pending message and the lease under which it is handled. */
export interface Held {
  readonly digest: string;
  readonly lease: Lease;
}

export interface HoldRow {
  /** Null if all are held. */
  readonly gone: string | null;
}

/** The statement that locks pending messages and proves their leases. */
export const holdStatement = (
  text: string,
  consumer: string,
  lockTimeoutMs: number,
  messages: readonly Held[],
): Statement & { readonly values: readonly unknown[] } => ({
  text,
  values: [
    consumer,
    lockTimeoutMs,
    hexArray(messages.map(({ digest }) => digest)),
    numberArray(messages.map(({ lease }) => lease.lane)),
    numberArray(messages.map(({ lease }) => lease.token)),
  ],
});

/** The digests that are not this worker's any more: another one's, or handled. */
export function goneFrom({ rows }: { readonly rows: readonly HoldRow[] }): ReadonlySet<string> {
  const text = rows[0]?.gone ?? null;
  // PostgreSQL prints a uuid with dashes.
  return new Set(
    text === null ? [] : (JSON.parse(text) as string[]).map((digest) => digest.replaceAll("-", "")),
  );
}

export const wasHeld = (answer: { readonly rows: readonly HoldRow[] }): boolean =>
  goneFrom(answer).size === 0;

import type { NotNew, Seen } from "../store/store.ts";
import type { Item } from "./item.ts";

/** What the ledger says of a message that was not new. */
export type Judgement = "duplicate" | "stored" | "conflict" | "late" | "gone";

/**
 * Compares a message with the committed row of its digest. Payloads are compared in the way the row was fingerprinted,
 * so a change of mode is no conflict; what cannot be compared is one, since then nothing is lost. `late`: it is not in the ledger, and too
 * old for that to mean anything. `gone`: the row was there when the claim met it and is not any more.
 */
export function judgeSeen(item: Item, { seen, late }: Pick<NotNew, "seen" | "late">): Judgement {
  if (seen === undefined) return late ? "late" : "gone";
  const sameIdentity = seen.id === item.id && seen.producer === item.producer && seen.tenant === item.tenant;
  if (!sameIdentity) return "conflict";
  if (digestAsStored(item, seen) !== seen.fingerprint) return "conflict";
  return seen.processed ? "duplicate" : "stored";
}

/** The payload's digest in the way the row says; `undefined` for a way this release does not know. Never throws. */
function digestAsStored(item: Item, { fingerprintMode }: Seen): string | undefined {
  if (fingerprintMode === item.fingerprint.mode) return item.fingerprint.digest;
  try {
    return item.message.fingerprint(fingerprintMode).digest;
  } catch {
    return undefined;
  }
}

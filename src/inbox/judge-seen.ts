import type { Seen } from "../store/store.ts";
import type { Item } from "./item.ts";

/** What the ledger says of a message that was not new. */
export type Judgement = "duplicate" | "stored" | "conflict" | "gone";

/**
 * Compares a message with the committed row of its digest. Payloads are compared in the way the row was fingerprinted,
 * so a change of mode is no conflict. `gone`: the row was there when the claim met it and is not any more.
 */
export function judgeSeen(item: Item, seen: Seen | undefined): Judgement {
  if (seen === undefined) return "gone";
  const sameIdentity = seen.id === item.id && seen.producer === item.producer && seen.tenant === item.tenant;
  if (!sameIdentity) return "conflict";
  const { digest } =
    seen.fingerprintMode === item.fingerprint.mode
      ? item.fingerprint
      : item.message.fingerprint(seen.fingerprintMode);
  if (digest !== seen.fingerprint) return "conflict";
  return seen.processed ? "duplicate" : "stored";
}

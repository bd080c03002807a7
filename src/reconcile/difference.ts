import type { Standing } from "./ledger.ts";
import type { SentMessage } from "./sent.ts";

/**
 * How one message differs between the two sides.
 * - `missing`: sent, and the consumer has never heard of it.
 * - `recent`: the same, but sent so lately that it may be under way.
 * - `conflicting`: applied with another payload than was sent, or the digest of another identity.
 * - `extra`: applied, and not in the list of what was sent.
 * - `pending`: stored, to be handled.
 * - `quarantined`: in quarantine, where it waits for a decision.
 * - `discarded`: a person decided that it will not be handled.
 * - `unaccounted`: its identity is kept, but it is not applied and its body is nowhere; its entry was purged, or somebody
 *   deleted rows by hand.
 * - `unchecked`: applied; the payloads cannot be compared because the two sides fingerprint in different ways.
 */
export type DifferenceKind = (typeof differenceKinds)[number];

/** Every kind of difference. */
export const differenceKinds = [
  "missing",
  "recent",
  "conflicting",
  "extra",
  "pending",
  "quarantined",
  "discarded",
  "unaccounted",
  "unchecked",
] as const;

/** One message that is not the same on both sides. */
export interface Difference {
  readonly kind: DifferenceKind;
  readonly tenant: string;
  readonly producer: string;
  readonly id: string;
  /** When it was sent, where the list says so. */
  readonly sentAt: Date | undefined;
  /** When it was applied, by the clock of the consumer's database. */
  readonly appliedAt: Date | undefined;
  /** Its entry in quarantine, for `inbox quarantine show`. */
  readonly entry: string | undefined;
}

/** What became of a sent message; `applied` is no difference. */
export function verdictOf(
  message: SentMessage,
  standing: Standing,
  youngerThan: number,
): DifferenceKind | "applied" {
  const { tenant, producer, id, fingerprint, time } = message;
  if (!standing.there) return time !== undefined && time >= youngerThan ? "recent" : "missing";
  // Half a digest is stored; the columns beside it tell whose it is.
  if (standing.message_id !== id || standing.producer !== producer || standing.tenant !== tenant) {
    return "conflicting";
  }
  if (standing.processed_at !== null) {
    if (fingerprint === undefined) return "applied";
    if (standing.fingerprint_mode !== fingerprint.mode) return "unchecked";
    return standing.fingerprint === fingerprint.digest ? "applied" : "conflicting";
  }
  if (standing.pending !== null) return "pending";
  if (standing.entry_status === "open") return "quarantined";
  return standing.entry_status === "discarded" ? "discarded" : "unaccounted";
}

/** A difference of a sent message. */
export const differenceOf = (kind: DifferenceKind, message: SentMessage, standing: Standing): Difference => ({
  kind,
  tenant: message.tenant,
  producer: message.producer,
  id: message.id,
  sentAt: message.time === undefined ? undefined : new Date(message.time),
  appliedAt: standing.processed_at ?? undefined,
  entry: standing.entry ?? undefined,
});

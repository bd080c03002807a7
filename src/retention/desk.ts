import { InboxError } from "../errors.ts";
import { createIdentityDigest } from "../message/identity.ts";
import type { Identity } from "../message/message.ts";
import type { Decider } from "../store/quarantine-store.ts";
import type { EffectName, Erased, RetentionDecision } from "../store/retention-desk.ts";
import type { Retention, RetentionScope } from "../store/retention.ts";
import type { Store } from "../store/store.ts";
import { wholeNumber } from "../whole-number.ts";

export interface EraseOptions {
  /** Erases what was not handled yet, too, and so discards it: it will never be applied. Default false. */
  readonly discard?: boolean | undefined;
  /** Effects of the message under ids that its handler chose; those without are found by the message. */
  readonly effects?: readonly EffectName[] | undefined;
  /** Tells what would be erased, and erases nothing. Default false. */
  readonly dryRun?: boolean | undefined;
}

/** What operators do about keeping: windows, sources that will not come back, bodies that must go. */
export interface RetentionAdmin {
  /**
   * Sets how long identities are kept, in milliseconds; `undefined`: for ever. Also shorter, until a process wants it
   * longer. What is forgotten stays so.
   */
  setWindow(scope: RetentionScope, windowMs: number | undefined, decider: Decider): Promise<Retention>;
  /** How many identities such a window would let go now, if no source stood still. Scans the ledger. */
  countOlder(scope: RetentionScope, windowMs: number): Promise<number>;
  /** Tells that a source will bring nothing again, so that nothing waits for it. Throws `source-unknown`. */
  retire(consumer: string, source: string, decider: Decider): Promise<void>;
  /**
   * Erases the bodies of a message everywhere, for good: entries in quarantine, repairs, answers, texts of errors, what of
   * its effects is kept. Its identity stays, so a redelivery is still known. Throws `identity-unknown`; `decision-needs`
   * where it waits to be handled and `discard` is not given, or where effects of it are still to be sent.
   */
  erase(consumer: string, identity: Identity, decider: Decider, options?: EraseOptions): Promise<Erased>;
  /** Newest first. Default 100. */
  decisions(limit?: number): Promise<readonly RetentionDecision[]>;
}

/** What operators do about keeping. Each decision leaves a row: who, when, why, what. */
export function createRetentionAdmin({ store }: { readonly store: Store }): RetentionAdmin {
  const desk = store.retentionDesk;
  return {
    async setWindow(scope, windowMs, decider) {
      const checked = checkedDecider(decider);
      if (windowMs !== undefined) wholeNumber("windowMs", windowMs, windowMs, 1, 3_155_760_000_000);
      const subject = JSON.stringify({ producer: scope.producer, windowMs: windowMs ?? "for ever" });
      // First, so that dying in between leaves no window that nobody set.
      await desk.record("window", scope.consumer, subject, checked);
      return store.retention.setWindow(scope, windowMs);
    },
    countOlder: (scope, windowMs) => desk.countOlder(scope, windowMs),
    async retire(consumer, source, decider) {
      const checked = checkedDecider(decider);
      const known = (await store.progress.list(consumer)).some((one) => one.source === source);
      if (!known) {
        throw new InboxError(
          "source-unknown",
          `No source ${JSON.stringify(source)} of ${JSON.stringify(consumer)} is known. See: inbox retention status`,
        );
      }
      await desk.record("retire", consumer, JSON.stringify({ source }), checked);
      await store.progress.retire(consumer, source);
    },
    async erase(consumer, identity, decider, { discard = false, effects = [], dryRun = false } = {}) {
      const checked = checkedDecider(decider);
      const digest = createIdentityDigest(consumer)(identity);
      const outcome = await desk.erase({ consumer, identity, digest, discard, effects, dryRun }, checked);
      switch (outcome.kind) {
        case "erased":
          return outcome.erased;
        case "unknown":
          throw new InboxError(
            "identity-unknown",
            `${JSON.stringify(consumer)} knows no message ${JSON.stringify(identity.id)} of that producer and tenant.`,
          );
        case "undecided":
          throw new InboxError(
            "decision-needs",
            `The message waits to be handled (${outcome.pending > 0 ? "pending" : "in quarantine"}), so its body is needed. ` +
              "Erasing it means that it is never applied: give --discard, or discard: true.",
          );
        case "to be sent":
          throw new InboxError(
            "decision-needs",
            `${outcome.effects} effects of the message are still to be sent. Wait until they are, or discard them.`,
          );
      }
    },
    decisions: (limit = 100) => desk.decisions(limit),
  };
}

function checkedDecider({ by, why }: Decider): Decider {
  const said = (field: string, text: unknown): string => {
    const trimmed = typeof text === "string" ? text.trim() : "";
    if (trimmed === "") throw new InboxError("decision-needs", `A decision needs ${field}.`);
    return trimmed;
  };
  return { by: said("by: who decides", by), why: said("why: the reason", why) };
}

import { hasCode, InboxError } from "../../errors.ts";
import { createIdentityDigest } from "../../message/identity.ts";
import { maxConsumerBytes } from "../../message/limits.ts";
import { sentAt } from "../../message/sent-at.ts";
import { showValue } from "../../message/show-value.ts";
import { isLongerThan, isStorableText } from "../../message/text-rules.ts";
import { computeFingerprint } from "../../message/fingerprint.ts";
import { fingerprintMode, type FingerprintOptions } from "../../message/fingerprint-mode.ts";
import type { StoredMessage } from "../../store/pending.ts";
import type { NotNew, Store } from "../../store/store.ts";
import { again, refused, sent, type Answer } from "../answer.ts";
import type { DeliveryOptions, Destination } from "../destination.ts";
import type { Effect } from "../effect.ts";

export interface InboxDestinationOptions extends DeliveryOptions {
  /** The store of the receiving inbox: another schema, or another database. */
  readonly store: Store;
  /** The consumer that is to handle the effects as messages. Several consumers are several destinations. */
  readonly consumer: string;
  /** How that consumer compares payloads. Default `{ by: "bytes" }`. */
  readonly fingerprint?: FingerprintOptions | undefined;
  /** How long to wait for somebody else who stores the same message, in milliseconds. Default 1,000. */
  readonly claimLockTimeoutMs?: number | undefined;
}

/**
 * Another inbox as the destination, with no broker between: effects become its pending messages, with the same tenant,
 * producer, id and key, in one statement a batch. Its workers handle them. What is there already with the same payload
 * is sent; with another one it is refused. Throws `invalid-option`.
 */
export function inboxDestination(options: InboxDestinationOptions): Destination {
  const { store, consumer, claimLockTimeoutMs = 1_000 } = options;
  if (typeof store?.pending?.accept !== "function") {
    throw new InboxError("invalid-option", "store must be a store, such as postgres(pool).");
  }
  const named =
    typeof consumer === "string" &&
    consumer !== "" &&
    isStorableText(consumer) &&
    !isLongerThan(consumer, maxConsumerBytes);
  if (!named) {
    throw new InboxError(
      "invalid-option",
      `consumer must be a text of 1 to ${maxConsumerBytes} bytes without NUL; got ${showValue(consumer)}.`,
    );
  }
  const mode = fingerprintMode(options.fingerprint ?? { by: "bytes" });
  const digestOf = createIdentityDigest(consumer);
  const name = { consumer, handlerVersion: "1" };

  const messageOf = (effect: Effect): StoredMessage => {
    const { tenant, producer, id, key, type, time, headers, payload } = effect;
    return {
      ...{ digest: digestOf(effect), tenant, producer, id, key, type, time, headers, payload },
      fingerprint: computeFingerprint(mode, payload),
      sentAt: sentAt(time),
    };
  };

  return {
    ...options,
    // The bodies go to a table of this consumer's whether it runs or not.
    open: () => store.pending.openLanes(consumer),
    async deliverBatch(effects): Promise<readonly Answer[]> {
      const messages = effects.map(messageOf);
      try {
        const notNew = await store.pending.accept(name, claimLockTimeoutMs, messages);
        const known = new Map(notNew.map((one) => [one.digest, one]));
        return messages.map((message) => answerOf(message, known.get(message.digest)));
      } catch (error) {
        // All or none; where the connection went in between, nobody knows which.
        const ambiguous = hasCode(error, "connection-lost") || hasCode(error, "commit-unknown");
        const answer = again(error, { fault: "destination", ambiguous });
        return messages.map(() => answer);
      }
    },
  };
}

function answerOf(message: StoredMessage, known: NotNew | undefined): Answer {
  if (known === undefined) return sent();
  const { seen } = known;
  if (known.late) return refused(late);
  if (seen === undefined) return again(new Error("The message was removed there just now."));
  const same = seen.id === message.id && seen.producer === message.producer && seen.tenant === message.tenant;
  // Compared in the way that was used there: a change of mode is no conflict.
  return same && computeFingerprint(seen.fingerprintMode, message.payload).digest === seen.fingerprint
    ? sent("known")
    : refused(conflict);
}

const late = new InboxError(
  "late",
  "The message is older than what the receiving inbox remembers, so it cannot be proven new there.",
);

const conflict = new InboxError(
  "payload-conflict",
  "The receiving inbox has this message with another payload.",
);

/** What decides whether the broker would drop a message. AMQP does not tell it; the management API or the user does. */
export interface QueueFacts {
  readonly type?: "classic" | "quorum" | "stream" | undefined;
  /** After so many returns the broker dead-letters or drops a message of a quorum queue; `"unlimited"` for none. */
  readonly deliveryLimit?: number | "unlimited" | undefined;
  /** Where dropped messages go; `"none"` for nowhere. */
  readonly deadLetterExchange?: string | undefined;
  /** After so long without an acknowledgement the broker closes the channel, in milliseconds. Its default is 30 minutes. */
  readonly acknowledgementTimeoutMs?: number | undefined;
  /**
   * Whether the broker gives messages to one consumer at a time (`x-single-active-consumer`). Then the prefetch does not
   * grow: that takes a new consumer, and one that stands by would come before it. Default false.
   */
  readonly singleActiveConsumer?: boolean | undefined;
  /** The broker's version, `"4.1.0"`: a quorum queue has a limit of 20 by default from 4.0 on. */
  readonly version?: string | undefined;
}

export const defaultAcknowledgementTimeoutMs = 1_800_000;
const defaultLimitOfFour = 20;

/** What a person should know before messages are taken from this queue. */
export function queueWarnings(facts: QueueFacts, handlerTimeoutMs: number): readonly string[] {
  const warnings: string[] = [];
  if (facts.type === undefined) {
    warnings.push(
      "Nobody could check whether the broker drops messages here: AMQP tells neither the queue's type nor its delivery limit " +
        "nor its dead-letter exchange. A quorum queue has a limit of 20 returns by default on RabbitMQ 4, also for messages " +
        "that were only prefetched. Give `management` so that it is checked, or say in `queueFacts` what you know.",
    );
  }
  const limit = limitOf(facts);
  const nowhere = facts.deadLetterExchange === undefined || facts.deadLetterExchange === "none";
  if (limit !== undefined && nowhere) {
    warnings.push(
      `The broker will DROP messages: this quorum queue has a delivery limit of ${limit} and no dead-letter exchange, and every ` +
        "lost connection counts against everything that was prefetched. Give it a dead-letter exchange (policy key " +
        "dead-letter-exchange), or a higher delivery-limit, or take messages in store-first mode.",
    );
  }
  const timeoutMs = facts.acknowledgementTimeoutMs ?? defaultAcknowledgementTimeoutMs;
  if (handlerTimeoutMs >= timeoutMs) {
    warnings.push(
      `A handler may take ${handlerTimeoutMs} ms, but after ${timeoutMs} ms without an acknowledgement the broker closes the ` +
        "channel and delivers again, while the handler still runs. Lower handlerTimeoutMs, raise the broker's " +
        "consumer_timeout, or take messages in store-first mode, which acknowledges when a message is stored.",
    );
  }
  return warnings;
}

/** The returns after which a message leaves the queue; `undefined` if none is known. */
function limitOf({ type, deliveryLimit, version }: QueueFacts): number | undefined {
  if (type !== "quorum" || deliveryLimit === "unlimited") return undefined;
  if (deliveryLimit !== undefined) return deliveryLimit < 0 ? undefined : deliveryLimit;
  const major = Number.parseInt(version ?? "", 10);
  return major >= 4 ? defaultLimitOfFour : undefined;
}

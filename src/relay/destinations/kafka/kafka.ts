import { InboxError } from "../../../errors.ts";
import { showValue } from "../../../message/show-value.ts";
import { wholeNumber } from "../../../whole-number.ts";
import { again, refused, sent, type Answer } from "../../answer.ts";
import type { DeliveryOptions, Destination } from "../../destination.ts";
import type { Effect } from "../../effect.ts";
import { within } from "../within.ts";
import type { KafkaProducer, SendFailure } from "./producer.ts";
import { isTopic, recordOf } from "./record-of.ts";
import { sendInOrder, type Outgoing } from "./send-in-order.ts";

export interface KafkaDestinationOptions extends DeliveryOptions {
  /** `confluentProducer(...)`, `kafkajsProducer(...)` or `platformaticProducer(...)`. One destination has it for itself. */
  readonly producer: KafkaProducer;
  /** The topic that effects go to. It must be there. */
  readonly topic: string | ((effect: Effect) => string);
  /**
   * About so many bytes go in one request at most, a larger record alone. Default 900,000, since brokers take batches of a
   * partition of 1,048,588 bytes by default.
   */
  readonly maxRequestBytes?: number | undefined;
  /** How long to wait for a connection, in milliseconds. Default 10,000. */
  readonly connectTimeoutMs?: number | undefined;
}

/**
 * Sends effects to Kafka in batches, each as a CloudEvent in binary mode with the effect's key as the record's key; one is
 * sent when all replicas in sync have confirmed it. What was sent again after an answer that was lost is in the topic
 * twice, under the same id, and never before an earlier one of its key. Throws `invalid-option`.
 */
export function kafkaDestination(options: KafkaDestinationOptions): Destination {
  const { producer, topic } = options;
  if (typeof producer?.send !== "function" || typeof producer.connect !== "function") {
    throw new InboxError(
      "invalid-option",
      "producer must be made by confluentProducer(...), kafkajsProducer(...) or platformaticProducer(...).",
    );
  }
  if (typeof topic !== "function" && !isTopic(topic)) {
    throw new InboxError(
      "invalid-option",
      `topic must be a topic's name or a function, not ${showValue(topic)}.`,
    );
  }
  const maxRequestBytes = wholeNumber(
    "maxRequestBytes",
    options.maxRequestBytes,
    900_000,
    1_000,
    1_000_000_000,
  );
  const connectTimeoutMs = wholeNumber("connectTimeoutMs", options.connectTimeoutMs, 10_000, 1, 86_400_000);
  const effectChooses = typeof topic === "function";

  return {
    ...options,
    async deliverBatch(effects): Promise<readonly (Answer | undefined)[]> {
      const answers: (Answer | undefined)[] = effects.map(() => undefined);
      const outgoing = new Map<number, Outgoing>();
      const stuck = new Set<string>();
      for (const [i, effect] of effects.entries()) {
        const { key } = effect;
        if (key !== undefined && stuck.has(key)) continue;
        try {
          const record = recordOf(effect, typeof topic === "function" ? topic(effect) : topic);
          outgoing.set(i, { record, key });
        } catch (error) {
          answers[i] = refused(error);
          if (key !== undefined) stuck.add(key);
        }
      }
      try {
        await within(producer.connect(), connectTimeoutMs, "connecting");
      } catch (error) {
        const answer = again(error, { fault: "destination" });
        for (const i of outgoing.keys()) answers[i] = answer;
        return answers;
      }
      const results = await sendInOrder(producer, [...outgoing.values()], maxRequestBytes);
      for (const [n, i] of [...outgoing.keys()].entries()) {
        const result = results[n]!;
        if (result !== "not-tried") answers[i] = result === "sent" ? sent() : answerOf(result, effectChooses);
      }
      return answers;
    },
    close: () => within(producer.close(), connectTimeoutMs, "closing").catch(() => undefined),
  };
}

function answerOf({ error, kind }: SendFailure, effectChooses: boolean): Answer {
  switch (kind) {
    case "too-large":
    case "invalid":
      return refused(error);
    case "forbidden":
      return effectChooses ? refused(error) : again(error, { fault: "destination" });
    case "no-topic":
      return again(error, { fault: effectChooses ? "effect" : "destination" });
    case "not-sent":
    case "behind":
      return again(error, { fault: "destination" });
    case "unclear":
      return again(error, { fault: "destination", ambiguous: true });
  }
}

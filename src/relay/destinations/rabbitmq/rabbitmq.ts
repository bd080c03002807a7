import { InboxError } from "../../../errors.ts";
import { showValue } from "../../../message/show-value.ts";
import { wholeNumber } from "../../../whole-number.ts";
import { again, refused, type Answer } from "../../answer.ts";
import type { DeliveryOptions, Destination } from "../../destination.ts";
import type { Effect } from "../../effect.ts";
import { within } from "../within.ts";
import { checkPublishClient, detectPublishClient, type RabbitmqPublishClient } from "./detect-client.ts";
import { messageOf } from "./message-of.ts";
import { createPublisher, type Publisher } from "./publisher.ts";

export interface RabbitmqDestinationOptions extends DeliveryOptions {
  /**
   * A `Connection` of `rabbitmq-client`, or a function that connects: `() => amqplib.connect(url)`. What a function made is
   * closed with the relay; a `Connection` stays yours. Credentials and TLS are the client's own options.
   */
  readonly client: RabbitmqPublishClient;
  /** The queue that effects go to, by way of the default exchange. Either this or `exchange`. */
  readonly queue?: string | ((effect: Effect) => string) | undefined;
  /** The exchange that effects go to. Either this or `queue`. The destination declares and binds nothing. */
  readonly exchange?: string | ((effect: Effect) => string) | undefined;
  /** With `exchange`; default `""`. */
  readonly routingKey?: string | ((effect: Effect) => string) | undefined;
  /** How long to wait for a connection, in milliseconds. Default 10,000. */
  readonly connectTimeoutMs?: number | undefined;
}

/**
 * Publishes effects to RabbitMQ, each persistent and mandatory; one is sent when the broker has confirmed it and did not
 * return it. It is a CloudEvent in binary mode, with the effect's id as `message_id`. What no queue takes is refused where
 * the effect chose the way; where the options say it, the destination is paused. Default `concurrency` 256: so many wait
 * for confirmations side by side, one of each key. Throws `invalid-option`.
 */
export function rabbitmqDestination(options: RabbitmqDestinationOptions): Destination {
  const { client, queue, exchange, routingKey = "" } = options;
  checkPublishClient(client);
  const byQueue = queue !== undefined;
  if (byQueue === (exchange !== undefined)) {
    throw new InboxError("invalid-option", "Give either queue, or exchange with routingKey.");
  }
  for (const [field, value] of Object.entries({ queue, exchange, routingKey })) {
    if (value !== undefined && typeof value !== "string" && typeof value !== "function") {
      throw new InboxError(
        "invalid-option",
        `${field} must be a text or a function, not ${showValue(value)}.`,
      );
    }
  }
  const connectTimeoutMs = wholeNumber("connectTimeoutMs", options.connectTimeoutMs, 10_000, 1, 86_400_000);
  const effectChooses = [queue, exchange, routingKey].some((part) => typeof part === "function");
  let current: Publisher | undefined;

  return {
    concurrency: 256,
    ...options,
    async deliver(effect): Promise<Answer> {
      let message;
      try {
        message = byQueue
          ? messageOf(effect, "", textOf(queue, effect))
          : messageOf(effect, textOf(exchange!, effect), textOf(routingKey, effect));
      } catch (error) {
        return refused(error);
      }
      const publisher = (current ??= createPublisher(
        detectPublishClient(client, connectTimeoutMs),
        effectChooses,
        connectTimeoutMs,
      ));
      try {
        await publisher.connect();
      } catch (error) {
        return again(error, { fault: "destination" });
      }
      return publisher.publish(message);
    },
    async close() {
      const last = current;
      current = undefined;
      if (last !== undefined) await within(last.close(), connectTimeoutMs, "closing").catch(() => undefined);
    },
  };
}

const textOf = (given: string | ((effect: Effect) => string), effect: Effect): string =>
  typeof given === "function" ? given(effect) : given;

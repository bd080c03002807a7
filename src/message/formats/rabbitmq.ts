import { isDate } from "node:util/types";
import { showValue } from "../show-value.ts";
import { fault, readAs, refused } from "./format.ts";
import type { Format, Why } from "./format.ts";
import { partitionKey } from "./partition-key.ts";
import { receiveProducer } from "./producer.ts";
import type { ProducerOption } from "./producer.ts";
import { property, propertyText } from "./property.ts";

const why: Why = {
  identity:
    "the message_id property, which the publisher must set; the delivery tag is only a counter of the channel",
  payload: "the body",
  key: "the key the source was told to use, else the CloudEvents attribute partitionkey, if there is one",
  time: "the timestamp property",
};

/**
 * RabbitMQ messages with the `message_id` property (`messageId` in the clients). A message without it has no identity:
 * neither the delivery tag nor a hash of the body names an intent.
 */
export const rabbitmq = (options: ProducerOption = {}): Format => ({
  name: "rabbitmq",
  fingerprint: { by: "bytes" },
  read(delivery) {
    const { properties } = delivery;
    const producer = receiveProducer(options, delivery);
    const id = property(properties, "messageId");
    if (id !== undefined && id !== null && typeof id !== "string") {
      const text = `The message_id property is no text: it is ${showValue(id)}.`;
      return refused(delivery, fault("invalid-identity", text), { producer, id });
    }
    return [
      readAs(
        delivery,
        {
          producer,
          id,
          payload: delivery.body,
          key: partitionKey(delivery),
          type: propertyText(properties, "type"),
          time: amqpTime(property(properties, "timestamp")),
        },
        why,
      ),
    ];
  },
});

/** AMQP counts seconds; some clients give a Date. */
function amqpTime(timestamp: unknown): Date | undefined {
  if (isDate(timestamp)) return Number.isNaN(timestamp.getTime()) ? undefined : timestamp;
  return typeof timestamp === "number" && timestamp > 0 && timestamp < 8.64e12
    ? new Date(timestamp * 1000)
    : undefined;
}

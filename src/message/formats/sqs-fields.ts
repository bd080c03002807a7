import { propertyText } from "./property.ts";
import type { RawDelivery } from "./format.ts";

/** The queue's own id of a message, from the fields of the SQS message. */
export const sqsMessageId = ({ properties }: RawDelivery): string | undefined =>
  propertyText(properties, "MessageId");

/** The FIFO group, or the key that the source gave. */
export function sqsGroup(delivery: RawDelivery): unknown {
  const attributes = (delivery.properties as { Attributes?: unknown } | null | undefined)?.Attributes;
  return delivery.key ?? propertyText(attributes, "MessageGroupId");
}

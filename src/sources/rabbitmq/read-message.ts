import { headerValue } from "../../message/formats/header-value.ts";
import { isFault, type RawDelivery } from "../../message/formats/format.ts";
import type { AmqpMessage } from "./client.ts";
import { errorText } from "./error-text.ts";
import type { RabbitmqSettings } from "./options.ts";

/** What the formats read, from what the broker delivered. */
export function rawDelivery(
  message: AmqpMessage,
  { queue, tenant, key }: Pick<RabbitmqSettings, "queue" | "tenant" | "key">,
  warn: (text: string) => void,
): RawDelivery {
  const { properties, body } = message;
  return {
    ...{ body, properties, tenant, channel: queue },
    headers: properties["headers"],
    key: keyOf(message, key, warn),
  };
}

/** For order only: what is no text is no key. */
function keyOf(message: AmqpMessage, key: RabbitmqSettings["key"], warn: (text: string) => void): unknown {
  if (key === undefined) return undefined;
  if (key === "routing-key") return message.routingKey;
  if (typeof key === "function") {
    try {
      return key(message);
    } catch (error) {
      warn(`The key function threw, so there is no order for that message: ${errorText(error)}`);
      return undefined;
    }
  }
  const value = headerValue(message.properties["headers"], key.header);
  return isFault(value) ? undefined : value;
}

/** How often the broker delivered a message before, by the header that quorum queues set; a hint. */
export function deliveryCount({ properties }: AmqpMessage): number {
  const headers = properties["headers"];
  if (typeof headers !== "object" || headers === null) return 0;
  const count = (headers as Record<string, unknown>)["x-delivery-count"];
  return typeof count === "number" && count > 0 ? count : 0;
}

/** A stream forgets nothing and redelivers nothing: the acknowledgements this source lives by mean nothing there. */
export function isFromStream({ properties }: AmqpMessage): boolean {
  const headers = properties["headers"];
  return typeof headers === "object" && headers !== null && "x-stream-offset" in headers;
}

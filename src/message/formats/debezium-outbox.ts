import { receiveProducer } from "./producer.ts";
import type { ProducerOption } from "./producer.ts";
import { ignored, isFault, readAs, refused } from "./format.ts";
import type { Format, RawDelivery, Why } from "./format.ts";
import { headerTexts, headerValue, keyText } from "./header-value.ts";
import type { IdRule } from "./header-value.ts";
import { decodeUtf8 } from "../utf8.ts";
import { unwrapSchema } from "./debezium-schema.ts";

export interface DebeziumOutboxOptions extends ProducerOption {
  /** How the id header is read, default `text`. `uuid` where a converter change may alter the case or send bytes. */
  readonly idRule?: IdRule | undefined;
  /** The header that holds the outbox row's id, default `id`. */
  readonly idHeader?: string | undefined;
  /** Topics that begin with it carry heartbeats, default `__debezium-heartbeat`. */
  readonly heartbeatPrefix?: string | undefined;
}

/**
 * Events of Debezium's outbox event router: the outbox row's id is in a header, the aggregate's id is the key. The value
 * may be a JSON text inside a JSON string (expansion off) or the JSON itself (expansion on), with or without a schema
 * around it: the payload is the inner JSON in every case, so that a change of the connector's settings is no conflict.
 * Tombstones and heartbeats are ignored.
 */
export function debeziumOutbox(options: DebeziumOutboxOptions = {}): Format {
  const { idRule = "text", idHeader = "id", heartbeatPrefix = "__debezium-heartbeat" } = options;
  const why: Why = {
    identity: `the header ${idHeader}, the outbox row's id${idRule === "uuid" ? ", as a UUID in lower case" : ""}`,
    payload: "the event's JSON, taken out of the string or schema that a converter may put round it",
    key: "the Kafka key, which is the aggregate's id",
    time: "none: the router's timestamp is a setting of the topic",
  };
  return {
    name: "debezium-outbox",
    fingerprint: { by: "json" },
    read(delivery) {
      if (delivery.channel?.startsWith(heartbeatPrefix) === true) return ignored("a Debezium heartbeat");
      const id = headerValue(delivery.headers, idHeader, idRule);
      if (isFault(id)) return refused(delivery, id);
      if (delivery.body === null && id === undefined)
        return ignored("a tombstone, which only lets Kafka compact its log");
      const type = headerValue(delivery.headers, "eventType");
      const headers = headerTexts(delivery.headers);
      if (idRule === "uuid") headers["inbox-id-rule"] = "uuid";
      return [
        readAs(
          delivery,
          {
            producer: receiveProducer(options, delivery),
            id,
            payload: unwrap(delivery.body),
            key: keyText(delivery.key),
            type: isFault(type) ? undefined : type,
            headers,
          },
          why,
        ),
      ];
    },
  };
}

/** The inner JSON; anything else as it came. */
function unwrap(body: RawDelivery["body"]): RawDelivery["body"] {
  if (body === null) return null;
  const text = typeof body === "string" ? body : decodeUtf8(body);
  if (text === undefined) return body;
  const inner = unwrapSchema(text) ?? text;
  if (!/^\s*"/.test(inner)) return inner === text ? body : inner;
  try {
    const string: unknown = JSON.parse(inner);
    if (typeof string !== "string" || !/^\s*[[{]/.test(string)) return inner === text ? body : inner;
    JSON.parse(string);
    return string;
  } catch {
    return inner === text ? body : inner;
  }
}

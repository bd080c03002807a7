import { InboxError } from "../../errors.ts";
import { showValue } from "../show-value.ts";
import { isFault, readAs, refused } from "./format.ts";
import type { Format, Why } from "./format.ts";
import { headerTexts, headerValue } from "./header-value.ts";
import type { IdRule } from "./header-value.ts";
import { partitionKey } from "./partition-key.ts";
import { receiveProducer } from "./producer.ts";
import type { ProducerOption } from "./producer.ts";

export interface HeaderOptions extends ProducerOption {
  /** The header that holds the id; its name may be in any case. */
  readonly idHeader: string;
  /** How the id is read, default `text`. */
  readonly idRule?: IdRule | undefined;
  /** The header that holds the key. Default: the broker's key, else the CloudEvents attribute `partitionkey`. */
  readonly keyHeader?: string | undefined;
  /** The header that holds the type. */
  readonly typeHeader?: string | undefined;
}

/** The id in a header of Kafka, HTTP, NATS or AMQP: bytes, texts, or lists of equal ones. Throws `invalid-option`. */
export function header(options: HeaderOptions): Format {
  const { idHeader, idRule = "text", keyHeader, typeHeader } = options;
  if (typeof idHeader !== "string" || idHeader === "") {
    throw new InboxError(
      "invalid-option",
      `idHeader must be the name of a header, not ${showValue(idHeader)}.`,
    );
  }
  const why: Why = {
    identity: `the header ${idHeader}${idRule === "uuid" ? ", as a UUID in lower case" : ""}`,
    payload: "the body",
    key:
      keyHeader === undefined
        ? "the broker's key, else the CloudEvents attribute partitionkey"
        : `the header ${keyHeader}`,
    time: "none",
  };
  return {
    name: "header",
    fingerprint: { by: "bytes" },
    read(delivery) {
      const producer = receiveProducer(options, delivery);
      const id = headerValue(delivery.headers, idHeader, idRule);
      const key = keyHeader === undefined ? partitionKey(delivery) : headerValue(delivery.headers, keyHeader);
      const type = typeHeader === undefined ? undefined : headerValue(delivery.headers, typeHeader);
      for (const value of [id, key, type]) if (isFault(value)) return refused(delivery, value, { producer });
      const headers = headerTexts(delivery.headers);
      if (idRule === "uuid") headers["inbox-id-rule"] = "uuid";
      return [readAs(delivery, { producer, id, payload: delivery.body, key, type, headers }, why)];
    },
  };
}

/** NATS JetStream: the `Nats-Msg-Id` header, which the publisher chose. The stream's sequence is only a place in one stream. */
export const nats = (options: ProducerOption = {}): Format => ({
  ...header({ ...options, idHeader: "Nats-Msg-Id" }),
  name: "nats",
});

import { parseRfc3339 } from "../rfc3339.ts";
import { isFault, readAs, refused } from "./format.ts";
import type { Format, RawDelivery, ReadItem, Why } from "./format.ts";
import { headerValue } from "./header-value.ts";
import { receiveProducer } from "./producer.ts";
import type { ProducerOption } from "./producer.ts";

/*
 * Webhooks that name the delivery in a header. Their signatures must have been checked before: a forged delivery must
 * never get as far as its identity, or it would take the genuine one's place.
 */

/**
 * Standard Webhooks (and Svix): `webhook-id` names the message and stays the same on every attempt; the timestamp and
 * the signature change with each.
 */
export function standardWebhooks(options: ProducerOption = {}): Format {
  const why: Why = {
    identity: "the webhook-id header, which every attempt repeats",
    payload: "the body, byte for byte, as it was signed",
    key: "none",
    time: "none: webhook-timestamp is the attempt's",
  };
  return {
    name: "standard-webhooks",
    fingerprint: { by: "bytes" },
    read: (delivery) =>
      readHeaders(delivery, ["webhook-id", "svix-id"], why, { producer: receiveProducer(options, delivery) }),
  };
}

/** GitHub: `X-GitHub-Delivery` names the delivery to this hook, and a redelivery repeats it. */
export function github(options: ProducerOption = {}): Format {
  const why: Why = {
    identity: "the X-GitHub-Delivery header, which a redelivery repeats",
    payload: "the body, byte for byte, as it was signed",
    key: "the repository, organisation or app the hook belongs to (X-GitHub-Hook-Installation-Target-ID)",
    time: "none",
  };
  return {
    name: "github",
    fingerprint: { by: "bytes" },
    read(delivery) {
      const key = headerValue(delivery.headers, "x-github-hook-installation-target-id");
      const type = headerValue(delivery.headers, "x-github-event");
      return readHeaders(delivery, ["x-github-delivery"], why, {
        producer: options.producer ?? "github",
        key: isFault(key) ? undefined : key,
        type: isFault(type) ? undefined : type,
      });
    },
  };
}

/**
 * Shopify: `X-Shopify-Webhook-Id` names the delivery to one subscription and stays the same on retries.
 * `X-Shopify-Event-Id` names the merchant's action, which several subscriptions share: with it the second one's delivery
 * would be dropped as a duplicate.
 */
export function shopify(options: ProducerOption = {}): Format {
  const why: Why = {
    identity:
      "the X-Shopify-Webhook-Id header in the shop's name; X-Shopify-Event-Id is shared by several subscriptions",
    payload: "the body, byte for byte, as it was signed",
    key: "none",
    time: "the X-Shopify-Triggered-At header",
  };
  return {
    name: "shopify",
    fingerprint: { by: "bytes" },
    read(delivery) {
      const shop = headerValue(delivery.headers, "x-shopify-shop-domain");
      const type = headerValue(delivery.headers, "x-shopify-topic");
      const time = headerValue(delivery.headers, "x-shopify-triggered-at");
      if (isFault(shop)) return refused(delivery, shop);
      return readHeaders(delivery, ["x-shopify-webhook-id"], why, {
        producer: options.producer ?? shop,
        type: isFault(type) ? undefined : type,
        time: typeof time === "string" ? parseRfc3339(time) : undefined,
      });
    },
  };
}

interface Rest {
  readonly producer: string | undefined;
  readonly key?: string | undefined;
  readonly type?: string | undefined;
  readonly time?: Date | undefined;
}

function readHeaders(
  delivery: RawDelivery,
  names: readonly string[],
  why: Why,
  rest: Rest,
): readonly ReadItem[] {
  for (const name of names) {
    const id = headerValue(delivery.headers, name);
    if (isFault(id)) return refused(delivery, id, rest);
    if (id !== undefined) return [readAs(delivery, { ...rest, id, payload: delivery.body }, why)];
  }
  return [readAs(delivery, { ...rest, id: undefined, payload: delivery.body }, why)];
}

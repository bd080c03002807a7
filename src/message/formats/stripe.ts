import { readJson } from "../json-document.ts";
import { showValue } from "../show-value.ts";
import { fault, readAs, refused } from "./format.ts";
import type { Format, Why } from "./format.ts";
import type { ProducerOption } from "./producer.ts";

const why: Why = {
  identity:
    "the event's id field (evt_...), which every retry repeats; the signature's time and value change with each",
  payload: "the body, byte for byte, as it was signed",
  key: "data.object.id, the object the event is about",
  time: "the created field",
};

/**
 * Stripe events. The signature must have been checked before: a forged event must never get as far as its identity. An
 * event about an older state may arrive later, under another id: ordering is for the handler or the version strategy.
 */
export const stripe = (options: ProducerOption = {}): Format => ({
  name: "stripe",
  fingerprint: { by: "bytes" },
  read(delivery) {
    const producer = options.producer ?? "stripe";
    const event = readJson(delivery.body);
    if (typeof event === "string") {
      return refused(delivery, fault("malformed", `The Stripe event cannot be read: ${event}.`), {
        producer,
      });
    }
    const id = event.text(["id"]);
    const rawId = event.raw(["id"]);
    if (id === undefined && rawId !== undefined && rawId !== "null") {
      return refused(delivery, fault("malformed", `The Stripe event's id is no text: ${showValue(rawId)}.`), {
        producer,
      });
    }
    const created = Number(event.raw(["created"]) ?? NaN);
    return [
      readAs(
        delivery,
        {
          producer,
          id,
          payload: delivery.body,
          key: event.text(["data", "object", "id"]),
          type: event.text(["type"]),
          time: created > 0 && created < 8.64e12 ? new Date(created * 1000) : undefined,
        },
        why,
      ),
    ];
  },
});

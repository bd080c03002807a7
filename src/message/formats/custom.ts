import type { MessageCandidate } from "../check-message.ts";
import { fault, ignored, readAs, refused } from "./format.ts";
import type { Format, RawDelivery } from "./format.ts";
import { keyText } from "./header-value.ts";
import { printable } from "../show-value.ts";

/** What a user's function makes of a delivery: the parts of a message, or `{ ignore: reason }`. */
export type Extracted = MessageCandidate | { readonly ignore: string };

/**
 * A format of the user's own: a function from a delivery to the parts of a message. What it leaves out is taken from the
 * delivery (payload, key); what it gives is checked like any other; what it throws rejects the delivery as `malformed`.
 */
export const custom = (extract: (delivery: RawDelivery) => Extracted, name = "custom"): Format => ({
  name,
  fingerprint: { by: "bytes" },
  read(delivery) {
    let extracted: Extracted;
    try {
      extracted = extract(delivery);
    } catch (error) {
      const text = error instanceof Error ? printable(error.message.slice(0, 200)) : "it threw no Error";
      return refused(delivery, fault("malformed", `The function that reads the delivery failed: ${text}`));
    }
    if (typeof extracted !== "object" || extracted === null) {
      return refused(delivery, fault("no-identity", "The function that reads the delivery gave nothing."));
    }
    if ("ignore" in extracted) return ignored(String(extracted.ignore));
    const own = "the function that was given";
    return [
      readAs(
        delivery,
        { payload: delivery.body, key: keyText(delivery.key), ...extracted },
        { identity: own, payload: own, key: own, time: own },
      ),
    ];
  },
});

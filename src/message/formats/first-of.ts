import { InboxError } from "../../errors.ts";
import { isRejected } from "../message.ts";
import type { Format, ReadItem } from "./format.ts";

/**
 * The first of several formats that finds an identity. Only a delivery that bears no sign of a format (`no-identity`) is
 * passed to the next one: a broken id must not be replaced by another kind of id, or the next delivery, unbroken, would
 * run twice. Where none finds one, the last one's answer counts. Throws `invalid-option` for an empty list.
 */
export function firstOf(...formats: readonly Format[]): Format {
  const [first] = formats;
  if (first === undefined) throw new InboxError("invalid-option", "firstOf needs at least one format.");
  return {
    name: `first of ${formats.map((format) => format.name).join(", ")}`,
    fingerprint: first.fingerprint,
    read(delivery) {
      let items: readonly ReadItem[] = [];
      for (const format of formats) {
        items = format.read(delivery);
        if (!items.every(hasNoIdentity)) return items;
      }
      return items;
    },
  };
}

/** Whether a delivery bears no sign of a format. */
export const hasNoIdentity = (item: ReadItem): boolean =>
  item.kind === "message" && isRejected(item.received) && item.received.rejected.code === "no-identity";

import type { RawDelivery } from "./format.ts";
import { eachHeader, keyText } from "./header-value.ts";

/**
 * The key that the source gave, else the CloudEvents attribute `partitionkey` of a message that is named otherwise. For
 * order only: whatever it is, nothing is rejected for its sake.
 */
export function partitionKey({ key, headers }: RawDelivery): string | undefined {
  const given = keyText(key);
  if (given !== undefined) return given;
  let found: string | undefined;
  eachHeader(headers, (name, value) => {
    if (name.length < shortest || !attribute.test(name)) return;
    const text = keyText(Array.isArray(value) ? value[0] : value);
    found ??= text === undefined || !name.startsWith("ce-") ? text : decoded(text);
  });
  return found;
}

const attribute = /^(?:ce[-_]|cloudEvents[:_])partitionkey$/i;
const shortest = "ce-partitionkey".length;

/** NATS carries attributes percent-encoded. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

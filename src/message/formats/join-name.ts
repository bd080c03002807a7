import { createHash } from "node:crypto";

/**
 * Several parts as one name, so that different parts never give the same name: `|` between them, and `|` and `%` inside
 * them percent-encoded.
 */
export const joinName = (parts: readonly string[]): string => parts.map(escapePart).join("|");

const escapePart = (part: string): string => part.replaceAll("%", "%25").replaceAll("|", "%7C");

/** `joinName` within `limit` bytes: where it would be longer, the last part is replaced by its SHA-256. */
export function joinNameWithin(parts: readonly string[], limit: number): string {
  const name = joinName(parts);
  if (Buffer.byteLength(name) <= limit) return name;
  const last = createHash("sha256")
    .update(parts.at(-1) ?? "")
    .digest("hex");
  return joinName([...parts.slice(0, -1), `sha256:${last}`]);
}

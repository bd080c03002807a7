import { InboxError } from "./errors.ts";

/** The option, or its default. Throws `invalid-option`, with field, rule and value, unless it is a whole number in range. */
export function wholeNumber(
  field: string,
  value: number | undefined,
  fallback: number,
  least: number,
  most: number,
): number {
  const number = value ?? fallback;
  if (Number.isInteger(number) && number >= least && number <= most) return number;
  throw new InboxError(
    "invalid-option",
    `${field} must be a whole number from ${least} to ${most}; got ${typeof number === "string" ? JSON.stringify(number) : String(number)}.`,
  );
}

import { InboxError } from "../errors.ts";
import { showValue } from "./show-value.ts";

/**
 * How a message's id carries the time at which it was made. `uuidv7`: RFC 9562, with dashes. `ulid`: 26 characters of
 * Crockford's base 32. `ksuid`: 27 of base 62. `objectid`: 24 hex digits, as MongoDB makes them. `snowflake`: a decimal
 * number whose upper bits count milliseconds since `epochMs` (milliseconds since 1970; Twitter's is 1288834974657).
 */
export type IdTime =
  "uuidv7" | "ulid" | "ksuid" | "objectid" | { readonly snowflake: { readonly epochMs: number } };

/** When an id was made, in whole milliseconds since 1970; `undefined` where it is not of the kind. Never throws. */
export type ReadIdTime = (id: string) => number | undefined;

/** The reader of a rule. Throws `invalid-option` for what is none. */
export function idTimeReader(rule: IdTime): ReadIdTime {
  if (typeof rule === "string" && Object.hasOwn(readers, rule)) return readers[rule];
  const epochMs = (rule as { snowflake?: { epochMs?: unknown } } | null | undefined)?.snowflake?.epochMs;
  if (typeof epochMs === "number" && Number.isSafeInteger(epochMs) && epochMs >= 0 && epochMs <= maxEpochMs)
    return snowflakeTime(epochMs);
  throw new InboxError(
    "invalid-option",
    `idTime must be ${Object.keys(readers).join(", ")} or { snowflake: { epochMs } }, a whole number of milliseconds from 0 to ${maxEpochMs}; got ${showValue(rule)}.`,
  );
}

// The year 2100: an epoch lies in the past.
const maxEpochMs = 4_102_444_800_000;

const uuidv7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i;
const ulid = /^[0-7][0-9a-hjkmnp-tv-z]{25}$/i;
const ksuid = /^[0-9A-Za-z]{27}$/;
const objectId = /^[0-9a-f]{24}$/i;
const snowflake = /^[1-9][0-9]{0,18}$/;

const ulidDigits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const ksuidDigits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const ksuidEpochSeconds = 1_400_000_000;

const readers: Readonly<Record<Extract<IdTime, string>, ReadIdTime>> = {
  uuidv7: (id) => (uuidv7.test(id) ? Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16) : undefined),
  // 48 bits of milliseconds in the first ten digits.
  ulid: (id) => (ulid.test(id) ? numberOf(id.slice(0, 10).toUpperCase(), ulidDigits) : undefined),
  ksuid(id) {
    if (!ksuid.test(id)) return undefined;
    let number = 0n;
    // As many digits at once as a number holds exactly.
    for (let at = 0; at < id.length; at += 8) {
      const digits = id.slice(at, at + 8);
      number = number * 62n ** BigInt(digits.length) + BigInt(numberOf(digits, ksuidDigits));
    }
    // 32 bits of seconds before 128 of chance.
    const seconds = number >> 128n;
    return seconds < 2n ** 32n ? (Number(seconds) + ksuidEpochSeconds) * 1_000 : undefined;
  },
  objectid: (id) => (objectId.test(id) ? Number.parseInt(id.slice(0, 8), 16) * 1_000 : undefined),
};

const snowflakeTime =
  (epochMs: number): ReadIdTime =>
  (id) => {
    if (!snowflake.test(id)) return undefined;
    const number = BigInt(id);
    return number < 2n ** 63n ? Number(number >> 22n) + epochMs : undefined;
  };

const numberOf = (text: string, digits: string): number => {
  let number = 0;
  for (const digit of text) number = number * digits.length + digits.indexOf(digit);
  return number;
};

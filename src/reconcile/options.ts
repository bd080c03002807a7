import { InboxError } from "../errors.ts";
import { maxConsumerBytes } from "../message/limits.ts";
import { showValue } from "../message/show-value.ts";
import { isLongerThan, isStorableText } from "../message/text-rules.ts";
import { wholeNumber } from "../whole-number.ts";
import type { Difference } from "./difference.ts";
import type { SentSource } from "./sent.ts";

export interface ReconcileOptions {
  /** The consumer whose ledger is compared. */
  readonly consumer: string;
  /** What was sent: `sentFile`, `sentQuery`, `sentInbox`. */
  readonly sent: SentSource;
  /**
   * The producers whose applied messages count as extra if they are not in the list. Default: those the list names. Give
   * it where the list may be empty.
   */
  readonly producers?: readonly string[] | undefined;
  /** Only applied messages of this tenant count as extra. Default: of all tenants. */
  readonly tenant?: string | undefined;
  /** The beginning of the span that is compared: when it was sent, for what has a time. Default: all there is. */
  readonly since?: Date | undefined;
  /** Its end, not part of it. Default: `marginMs` before now, by the clock of the consumer's database. */
  readonly until?: Date | undefined;
  /**
   * How far the producer's clock may be off, and how long a message is under way, together, in milliseconds. Messages
   * sent so long before or after the span are read too, so that none is called extra for being at its edge; and none that
   * is younger is called missing. Default 300,000 (five minutes).
   */
  readonly marginMs?: number | undefined;
  /** Called with each difference, one after another; the comparison waits for what it returns. */
  readonly onDifference?: ((difference: Difference) => void | Promise<void>) | undefined;
  /** The schema that holds the inbox's tables. Default `inbox`. */
  readonly schema?: string | undefined;
  /** How long to wait for a connection, in milliseconds. Default 5,000. */
  readonly connectTimeoutMs?: number | undefined;
  /**
   * How many digests of sent messages are kept in memory at once, at 32 to 64 bytes each; where more differ, the list is
   * read again for each so many. Default 1,000,000.
   */
  readonly maxDigests?: number | undefined;
}

export interface CheckedOptions extends ReconcileOptions {
  readonly marginMs: number;
  readonly schema: string;
  readonly connectTimeoutMs: number;
  readonly maxDigests: number;
}

/** Throws `invalid-option`, with field, rule and value. */
export function checkOptions(options: ReconcileOptions): CheckedOptions {
  const { consumer, since, until } = options;
  if (
    typeof consumer !== "string" ||
    consumer === "" ||
    isLongerThan(consumer, maxConsumerBytes) ||
    !isStorableText(consumer)
  ) {
    throw wrong("consumer", `a text of 1 to ${maxConsumerBytes} bytes`, showValue(consumer));
  }
  for (const [field, value] of Object.entries({ since, until })) {
    if (value !== undefined && !(value instanceof Date && Number.isFinite(value.getTime()))) {
      throw wrong(field, "a valid Date", showValue(value));
    }
  }
  return {
    ...options,
    marginMs: wholeNumber("marginMs", options.marginMs, 300_000, 0, 366 * 86_400_000),
    schema: options.schema ?? "inbox",
    connectTimeoutMs: wholeNumber("connectTimeoutMs", options.connectTimeoutMs, 5_000, 1, 3_600_000),
    maxDigests: wholeNumber("maxDigests", options.maxDigests, 1_000_000, 1, 100_000_000),
  };
}

export const wrong = (field: string, rule: string, value: string): InboxError =>
  new InboxError("invalid-option", `${field} must be ${rule}; got ${value}.`);

/** The part of a stream's configuration that says what is kept. */
export interface StreamConfig {
  readonly retention?: string;
  /** In nanoseconds; 0 for ever. */
  readonly max_age?: number;
}

const nanosecondsAMillisecond = 1_000_000;

/**
 * A stream with the retention `limits` is a log that can be read again from its beginning; of the others a message goes when
 * it is acknowledged. In milliseconds; `Infinity` for ever.
 */
export function streamKept({ retention, max_age: maxAge = 0 }: StreamConfig): {
  readonly kind: "log" | "queue";
  readonly retentionMs: number;
} {
  return {
    kind: retention === "workqueue" || retention === "interest" ? "queue" : "log",
    retentionMs: maxAge > 0 ? maxAge / nanosecondsAMillisecond : Number.POSITIVE_INFINITY,
  };
}

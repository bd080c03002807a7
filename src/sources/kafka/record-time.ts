/** A record's time in milliseconds since 1970; `undefined` where it has none: Kafka says -1 then. */
export function recordTime(timestamp: unknown): number | undefined {
  if (typeof timestamp !== "number" && typeof timestamp !== "bigint" && typeof timestamp !== "string")
    return undefined;
  const ms = timestamp === "" ? Number.NaN : Number(timestamp);
  return Number.isSafeInteger(ms) && ms >= 0 ? ms : undefined;
}

import { InvalidArgumentError } from "commander";

const units: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** An option's value as a span of time in milliseconds: `90d`, `12h`, `30m`, `45s`. */
export function duration(text: string): number {
  const match = /^(\d{1,6})([smhd])$/.exec(text);
  const unit = units[match?.[2] ?? ""];
  if (match === null || unit === undefined) {
    throw new InvalidArgumentError("It must be a span of time such as 90d, 12h, 30m or 45s.");
  }
  return Number(match[1]) * unit;
}

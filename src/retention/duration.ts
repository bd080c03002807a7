const units = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const;

type Unit = keyof typeof units;

/** The longest duration anybody may give: a hundred years, in milliseconds. */
export const maxDurationMs: number = 36_525 * units.d;

/**
 * A duration as people write it, in milliseconds: whole numbers with units, such as `90s`, `36h`, `7d` or `1d12h`.
 * `undefined` for anything else, and beyond a hundred years.
 */
export function parseDuration(text: string): number | undefined {
  if (!/^(\d{1,15}(ms|s|m|h|d|w))+$/.test(text)) return undefined;
  let total = 0;
  for (const [, digits = "", unit = ""] of text.matchAll(/(\d+)(ms|s|m|h|d|w)/g)) {
    total += Number(digits) * units[unit as Unit];
  }
  return total <= maxDurationMs ? total : undefined;
}

/** Milliseconds as people write them, with the two largest units that say something: `7d`, `1d12h`, `90s`. */
export function showDuration(ms: number): string {
  if (!Number.isFinite(ms)) return "for ever";
  let left = Math.ceil(ms);
  const parts: string[] = [];
  for (const unit of ["d", "h", "m", "s", "ms"] as const) {
    const count = Math.floor(left / units[unit]);
    if (count > 0) parts.push(`${count}${unit}`);
    left -= count * units[unit];
    if (parts.length === 2) break;
  }
  return parts.length === 0 ? "0s" : parts.join("");
}

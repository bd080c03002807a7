const units: readonly (readonly [name: string, ms: number])[] = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1_000],
];

/** A span of time for people, in its two largest units: `3d 4h`, `12m 5s`, `0.2s`; `-` for none. */
export function age(ms: number | undefined): string {
  if (ms === undefined) return "-";
  const at = units.findIndex(([, size]) => ms >= size);
  const [name, size] = units[at] ?? ["s", 1_000];
  if (name === "s")
    return ms < 10_000 ? `${(Math.max(0, ms) / 1_000).toFixed(1)}s` : `${Math.floor(ms / size)}s`;
  const [nextName, nextSize] = units[at + 1]!;
  const rest = Math.floor((ms % size) / nextSize);
  return `${Math.floor(ms / size)}${name}${rest === 0 ? "" : ` ${rest}${nextName}`}`;
}

import { InboxError } from "../errors.ts";
import type { Kept } from "../sources/source.ts";

export interface KeptCheck {
  /** How long identities are kept, in milliseconds; `undefined`: for ever. */
  readonly windowMs: number | undefined;
  /** Whether a window that is too short is refused; else it is a warning. */
  readonly strict: boolean;
  readonly warn: (text: string) => void;
}

/**
 * Compares how long brokers can send a message again with how long its identity is kept. Warns where a copy may come
 * later, or with `strict` throws `window-too-short`.
 */
export function checkKept(kept: readonly Kept[], { windowMs, strict, warn }: KeptCheck): void {
  if (windowMs === undefined) return;
  const faults = kept.flatMap(({ name, retentionMs, deadLetter }) => {
    const own = retentionMs > windowMs ? [`${name} keeps messages for ${lasting(retentionMs)}`] : [];
    const dead = deadLetter !== undefined && deadLetter.retentionMs > windowMs;
    return dead
      ? [...own, `its dead letters ${deadLetter.name} are kept for ${lasting(deadLetter.retentionMs)}`]
      : own;
  });
  if (faults.length === 0) return;
  const text =
    `Identities are kept for ${lasting(windowMs)}, but ${faults.join(", and ")}: a copy that comes later is late, and ` +
    "waits in quarantine for a person. Keep identities longer (inbox retention plan), or messages shorter.";
  if (strict) throw new InboxError("window-too-short", text);
  warn(text);
}

const units = [
  ["days", 86_400_000],
  ["hours", 3_600_000],
  ["minutes", 60_000],
  ["seconds", 1_000],
] as const;

function lasting(ms: number): string {
  if (!Number.isFinite(ms)) return "ever";
  const [unit, length] = units.find(([, size]) => ms >= size) ?? ["milliseconds", 1];
  const count = Number((ms / length).toFixed(1));
  return `${count} ${count === 1 ? unit.slice(0, -1) : unit}`;
}

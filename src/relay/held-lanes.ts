import type { EffectLease, TakenEffect } from "../store/outbox.ts";

interface Lane {
  readonly lease: EffectLease;
  /** When the lease runs out, by this process's own clock, counted from before the database was asked for it. */
  deadline: number;
  /** Effects of it that have no answer yet. */
  open: number;
  lost: boolean;
}

/** The lanes that one relay holds of one destination, and until when. */
export interface HeldLanes {
  readonly size: number;
  add(effects: readonly TakenEffect[], deadline: number): void;
  /** Whether an effect may still be sent under its lease. */
  holds(lease: EffectLease, now: number): boolean;
  /** An effect of the lane needs nothing more. */
  closeOne(lease: EffectLease): void;
  /** Leases to give back: nothing of theirs is open. */
  finished(): readonly EffectLease[];
  forget(leases: readonly EffectLease[]): void;
  all(): readonly EffectLease[];
  /** These were prolonged; the others that were asked for are lost. */
  renewed(asked: readonly EffectLease[], held: readonly EffectLease[], deadline: number): void;
}

export function heldLanes(): HeldLanes {
  const lanes = new Map<string, Lane>();
  const name = ({ lane, token }: EffectLease): string => `${lane} ${token}`;
  return {
    get size() {
      return lanes.size;
    },
    add(effects, deadline) {
      for (const { lease } of effects) {
        const known = lanes.get(name(lease));
        if (known === undefined) lanes.set(name(lease), { lease, deadline, open: 1, lost: false });
        else known.open++;
      }
    },
    holds(lease, now) {
      const lane = lanes.get(name(lease));
      return lane !== undefined && !lane.lost && now < lane.deadline;
    },
    closeOne(lease) {
      const lane = lanes.get(name(lease));
      if (lane !== undefined) lane.open--;
    },
    finished: () => [...lanes.values()].filter(({ open }) => open <= 0).map(({ lease }) => lease),
    forget(leases) {
      for (const lease of leases) lanes.delete(name(lease));
    },
    all: () => [...lanes.values()].filter(({ lost }) => !lost).map(({ lease }) => lease),
    renewed(asked, held, deadline) {
      const kept = new Set(held.map(name));
      for (const lease of asked) {
        const lane = lanes.get(name(lease));
        if (lane === undefined) continue;
        if (kept.has(name(lease))) lane.deadline = deadline;
        else lane.lost = true;
      }
    },
  };
}

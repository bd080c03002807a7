import type { Outcome } from "./outcome.ts";

/** How many messages had each outcome. */
export type OutcomeCounts = Readonly<Record<Outcome, number>>;

export const emptyCounts = (): Record<Outcome, number> => ({
  ...{
    applied: 0,
    duplicate: 0,
    superseded: 0,
    stored: 0,
    conflict: 0,
    rejected: 0,
    late: 0,
    busy: 0,
    failed: 0,
  },
});

import type { ProgramName } from "../../examples/two-services/play/fleet.ts";

/** Where a program can be made to die, by what it is about to do, or has just done. */
export const pointsOf = {
  "orders service": ["request", "before commit", "commit sent", "before answer"],
  "orders relay": ["taken", "sending", "delivered", "before settle", "settle sent", "settled"],
  "ledger service": ["claimed", "handled", "before commit", "commit sent", "committed", "outcome"],
  "ledger relay": ["taken", "sending", "delivered", "before settle", "settle sent", "settled"],
  "receipts service": ["request", "before answer", "answered"],
} as const satisfies Readonly<Record<ProgramName, readonly string[]>>;

export type Point = (typeof pointsOf)[ProgramName][number];

/** What a process is told: when you next come to this point, die; or kill this process instead, and go on. */
export interface Arm {
  readonly arm: Point;
  readonly victim?: number | undefined;
}

import type { Point } from "../crash/plan.ts";

/** What the parent says to a consumer process: die when you next come to this point. */
export interface Arm {
  readonly arm: Point;
}

/** What a consumer process says with its last breath: where it dies, and by whose will. */
export interface Dying {
  readonly dying: Point | "poison";
}

/** The exit code of a consumer process that found no database when it started. */
export const databaseAway = 75;

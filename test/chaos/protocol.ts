import type { Point } from "../crash/plan.ts";

/** What the parent says to a consumer process: when you next come to this point, die, or kill this server process. */
export interface Arm {
  readonly arm: Point;
  readonly server?: number | undefined;
}

/** What a consumer process says with its last breath: where it dies, and by whose will. */
export interface Dying {
  readonly dying: Point | "poison";
}

/** What it says when it has killed the server, and lives. */
export interface KilledServer {
  readonly killedServer: Point;
}

/** The exit code of a consumer process that found no database when it started. */
export const databaseAway = 75;

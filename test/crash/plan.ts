import type { RunOptions } from "../../src/inbox/run.ts";
import type { InboxOptions } from "../../src/inbox/options.ts";

/** Where a process can be made to die, in the order a message passes them. */
export const points = [
  "begun",
  "claimed",
  "handler",
  "handled",
  "commit sent",
  "committed",
  "outcome",
  "settled",
] as const;

/** The same for a pending message in the hands of a worker; `giving back`: its lane is on its way back to the others. */
export const workerPoints = [
  "taking",
  "taken",
  "begun",
  "claimed",
  "handler",
  "handled",
  "commit sent",
  "committed",
  "outcome",
  "giving back",
] as const;

/** `attempt` and `quarantine`: the statement that writes one is about to be sent. */
export type Point = (typeof points)[number] | (typeof workerPoints)[number] | "attempt" | "quarantine";

/** The three forms of a handler. */
export const forms = ["tx", "statements", "batch"] as const;

export type Form = (typeof forms)[number];

/**
 * How a process dies; a number: it does not, the PostgreSQL server with this process id does. `SIGSTOP`: it does not
 * either, and goes on when it is told to.
 */
export type Death = "SIGKILL" | "SIGSTOP" | "abort" | number;

/** What a consumer process is told by its first argument, as JSON. */
export interface Plan {
  readonly url: string;
  readonly schema: string;
  readonly form: Form;
  /** Default `inline`. `work`: without the broker. */
  readonly mode?: "inline" | "store-first" | "work" | undefined;
  /** Dies when it first comes here. */
  readonly die?: { readonly at: Point; readonly by: Death } | undefined;
  /** Dies whenever its handler meets a message whose id begins so. */
  readonly poison?: { readonly id: string; readonly by: "SIGKILL" | "abort" } | undefined;
  readonly inbox?: Partial<Pick<InboxOptions, "lanes" | "maxCrashes" | "retry" | "order">>;
  readonly run?: RunOptions | undefined;
}

/** What a consumer process tells, beside what it tells the broker. */
export type Told =
  | { readonly outcome: string; readonly id: string | undefined }
  /** The server is dead, and the process knows. */
  | { readonly serverKilled: true };

/** A message as the test broker carries it. `fail`: what its handler throws. */
export interface Body {
  readonly id?: string;
  readonly key?: string;
  readonly amount: number;
  readonly fail?: "permanent" | "once" | undefined;
}

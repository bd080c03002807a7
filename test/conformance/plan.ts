import type { RunHealth, RunOptions } from "../../src/inbox/run.ts";
import type { Form, Point } from "../crash/plan.ts";

/** Where a consumer stops and waits to be told to go on, so that the test can do something at that very moment. */
export type Pause =
  /** A handler has written its effect and has not returned. */
  | "handler"
  /** The source is about to be told. */
  | "before settle"
  /** The source has been told and has not answered. */
  | "in settle";

/** What a consumer process is told by its first argument, as JSON. */
export interface Plan {
  readonly url: string;
  readonly schema: string;
  /** The consumer's name in its effects. */
  readonly name: string;
  /** The place's. */
  readonly config: unknown;
  readonly form: Form;
  /** Of its database connections, by name. */
  readonly settings?: Readonly<Record<string, string>> | undefined;
  /** The subject's. */
  readonly namesByPlace?: boolean | undefined;
  /** Milliseconds a handler takes. Default 0. */
  readonly handlerMs?: number | undefined;
  /** Dies at the point, by SIGKILL, once it has handled so many messages. */
  readonly die?: { readonly at: Point; readonly after: number } | undefined;
  /** Pauses, once each, when it has handled so many messages. */
  readonly pauses?: readonly { readonly at: Pause; readonly after: number }[] | undefined;
  readonly inbox?:
    { readonly lanes?: number; readonly maxBatch?: number; readonly maxAttempts?: number } | undefined;
  readonly run?: RunOptions | undefined;
}

/** What a message says of itself, beside its id and key. */
export interface Content {
  readonly id?: string;
  readonly key: string;
  /** Its place among the messages of its key, from 1. */
  readonly sequence: number;
  /**
   * What its handler does: throws always, throws the first two times in a process (in the company of others and alone, so
   * that it is put off), or takes so many milliseconds.
   */
  readonly fails?: "always" | "twice";
  readonly takesMs?: number;
  /** Makes it larger. */
  readonly pad?: string;
}

/** What a consumer process tells. */
export type Told =
  /** It has subscribed to its signals; the source starts now. */
  | { readonly ready: true }
  | { readonly delivered: readonly (string | undefined)[] }
  /** Acknowledged, and the source has answered. */
  | { readonly acked: readonly (string | undefined)[] }
  | { readonly paused: Pause }
  /** The database went away, or is back. */
  | { readonly store: StoreState }
  | { readonly health: RunHealth }
  | { readonly report: Report };

/** What a consumer that ended by itself has counted, between the runner and the source. */
export interface Report {
  readonly deliveries: number;
  readonly settlements: number;
  /** Settlements of something that was not delivered, or was settled before. */
  readonly wrong: number;
  readonly extends: boolean;
  /** The most that was delivered and not settled, in deliveries and in bytes of their payloads. */
  readonly mostInHand: number;
  readonly mostBytesInHand: number;
}

export type StoreState = "away" | "back";

/** What a consumer is told. */
export type Order = { readonly go: Pause } | { readonly ask: "health" };

import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { ConsumerName, Store } from "../store/store.ts";
import type { HandlerUsage } from "./handler-usage.ts";
import type { InboxSettings } from "./options.ts";
import type { Pace } from "./pace.ts";
import type { Stash } from "./stash.ts";

/** What a worker does with messages that cannot be handled now. */
export interface Deferral {
  /** Aborted when the worker begins to stop. */
  readonly stopping: AbortSignal;
  /** Messages of a source whose key another process is working on. */
  readonly stash: Stash;
  /** Something in pending will be due in so many milliseconds. */
  soon(delayMs: number): void;
}

/** What every step of the inbox shares. */
export interface LaneContext {
  readonly store: Store;
  readonly name: ConsumerName;
  readonly settings: InboxSettings;
  readonly payloadSchema: StandardSchemaV1 | undefined;
  readonly pace: Pace;
  /** Tells when handlers seem to write somewhere else than into their transaction. */
  readonly usage: HandlerUsage;
  /** Aborted when the process must stop now. */
  readonly signal: AbortSignal | undefined;
  /**
   * Called when the database is away. Resolves true when it is back and the same messages shall be tried again; false,
   * or where it is not given: they are answered `failed`.
   */
  readonly waitForStore: ((error: unknown) => Promise<boolean>) | undefined;
  /** Lets a lane wait without keeping those from beginning that must be alone; `undefined`: nobody must. */
  readonly aside: (<T>(wait: () => Promise<T>) => Promise<T>) | undefined;
  /** Where failed messages go; `undefined` where whoever called sees to their redelivery. */
  readonly deferral: Deferral | undefined;
}

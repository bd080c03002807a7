import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { ConsumerName, Store } from "../store/store.ts";
import type { HandlerUsage } from "./handler-usage.ts";
import type { InboxSettings } from "./options.ts";
import type { Pace } from "./pace.ts";

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
}

import type { RelayOptions } from "../relay/relay.ts";
import type { Store } from "../store/store.ts";
import type { Config } from "./config.ts";
import { UsageError } from "./usage-error.ts";

/** What a function that is exported as `destinations` is given. */
export interface DestinationsContext {
  /** The store that the command works on. */
  readonly store: Store;
  /** Its pool, a `Pool` of `pg`. */
  readonly pool: unknown;
}

/** `export const relay`: how the relay works. Anything `createRelay` takes but the store and the destinations. */
export type RelaySettings = Omit<RelayOptions, "store" | "destinations" | "random">;

/**
 * The destinations of a module: an object, or a function that makes one of what the command works on. Throws a usage
 * error for what is none; whatever the function throws comes through.
 */
export async function loadDestinations(
  { destinations }: Config,
  context: DestinationsContext,
): Promise<RelayOptions["destinations"]> {
  const made: unknown =
    typeof destinations === "function"
      ? await (destinations as (context: DestinationsContext) => unknown)(context)
      : destinations;
  if (typeof made === "object" && made !== null && Object.keys(made).length > 0) {
    return made as RelayOptions["destinations"];
  }
  throw new UsageError(
    "The module names no destinations. Write: export const destinations = { email: httpDestination({ url }) }, or a " +
      "function that returns them.",
  );
}

/** The relay's settings of a module. Throws a usage error for what is no object. */
export function relaySettings({ relay }: Config): RelaySettings {
  if (relay === undefined) return {};
  if (typeof relay !== "object" || relay === null || "store" in relay || "destinations" in relay) {
    throw new UsageError('"relay" must be an object of relay options, without store and destinations.');
  }
  return relay;
}

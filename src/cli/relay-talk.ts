import { printable } from "../message/show-value.ts";
import { errorText } from "../relay/verdict.ts";
import { relayTelemetry } from "../telemetry/relay-channels.ts";
import type { Io } from "./io.ts";

/** Tells what happens while a relay runs: for people, or with `json` one object a line on stdout. */
export interface RelayTalk {
  /** Whether the database answers, as far as is known. */
  readonly storeAway: boolean;
  tell(event: string, facts: Readonly<Record<string, unknown>>, text?: string): void;
  stop(): void;
}

export function startRelayTalk(io: Io, json: boolean): RelayTalk {
  let storeAway = false;
  const tell: RelayTalk["tell"] = (event, facts, text) => {
    if (json) io.print(io.redact(JSON.stringify({ event, ...facts })));
    if (text !== undefined) io.say(printable(text));
  };
  const onDestination = (given: unknown): void => {
    const { destination, state, forMs, error } = given as {
      readonly destination: string;
      readonly state: "paused" | "back";
      readonly forMs: number | undefined;
      readonly error: unknown;
    };
    if (state === "back") return tell("back", { destination }, `${destination}: answers again.`);
    const why = errorText(error);
    const forSeconds = ((forMs ?? 0) / 1_000).toFixed(1);
    const facts = { destination, forMs: Math.round(forMs ?? 0), error: why };
    tell("paused", facts, `${destination}: paused for ${forSeconds} s: ${why.slice(0, 300)}`);
  };
  const onStore = (given: unknown): void => {
    const { state, error } = given as { readonly state: "away" | "back"; readonly error: unknown };
    storeAway = state === "away";
    if (!storeAway) return tell("store-back", {}, "The database is back.");
    const why = errorText(error);
    tell("store-away", { error: why }, `The database does not answer: ${why.slice(0, 300)}`);
  };
  relayTelemetry.destination.subscribe(onDestination);
  relayTelemetry.store.subscribe(onStore);
  return {
    get storeAway() {
      return storeAway;
    },
    tell,
    stop() {
      relayTelemetry.destination.unsubscribe(onDestination);
      relayTelemetry.store.unsubscribe(onStore);
    },
  };
}

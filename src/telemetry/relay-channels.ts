import { channel, type Channel } from "node:diagnostics_channel";

/** What relays tell of, as the inbox does through its own channels. Subscribers run synchronously. */
export interface RelayTelemetry {
  /** `{ destination, size }`: effects were taken under leases; none of them is sent yet. */
  readonly taken: Channel;
  /** `{ destination, effects }`: these are about to be handed to their destination. */
  readonly sending: Channel;
  /** `{ destination, effect, answer }`: the destination has answered; nothing is written yet. */
  readonly answered: Channel;
  /** `{ destination, size, gone }`: what became of effects is committed; `gone`: of so many it was another relay's to say. */
  readonly settled: Channel;
  /** `{ destination, state: "paused" | "back", forMs, error }`: a destination does not answer, or does again. Once a change. */
  readonly destination: Channel;
  /** `{ state: "away" | "back", error }`: the database went away or came back. Once a change. */
  readonly store: Channel;
}

const name = (event: string): Channel => channel(`transactional-inbox:relay:${event}`);

export const relayTelemetry: RelayTelemetry = {
  taken: name("taken"),
  sending: name("sending"),
  answered: name("answered"),
  settled: name("settled"),
  destination: name("destination"),
  store: name("store"),
};

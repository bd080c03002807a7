import { channel, type Channel } from "node:diagnostics_channel";

/**
 * The one seam through which the inbox tells what it does: `node:diagnostics_channel`. Nobody listening costs a check.
 * Subscribers run synchronously at the very point they are told of.
 */
export interface Telemetry {
  /** `{ consumer, size }`: a lane opened its transaction and is about to claim. */
  readonly begun: Channel;
  /** `{ consumer, size, fresh }`: the claim is answered. */
  readonly claimed: Channel;
  /** `{ consumer, size }`: a worker took pending messages and is about to hand them to its lanes. */
  readonly taken: Channel;
  /** `{ consumer, size }`: the handlers are done; COMMIT is next. */
  readonly handled: Channel;
  /** `{ consumer, size, ms }`: the server answered COMMIT; nothing is acknowledged yet. */
  readonly committed: Channel;
  /** `{ consumer, message, outcome, error }`: one message has its outcome; the source is told next. */
  readonly outcome: Channel;
  /** `{ source, size }`: the source has been told. */
  readonly settled: Channel;
  /** `{ consumer, code, splitInto, size, error }`: a lane rolled back and tries again in smaller parts. */
  readonly rolledBack: Channel;
  /** `{ consumer, state: "away" | "back", error }`: the database went away or came back. Once a change. */
  readonly store: Channel;
  /** `{}`: a tx was used after its handler had settled. */
  readonly sealed: Channel;
  /** `{ message }`: something an operator should read once. */
  readonly warning: Channel;
}

const name = (event: string): Channel => channel(`transactional-inbox:${event}`);

export const telemetry: Telemetry = {
  begun: name("begun"),
  claimed: name("claimed"),
  taken: name("taken"),
  handled: name("handled"),
  committed: name("committed"),
  outcome: name("outcome"),
  settled: name("settled"),
  rolledBack: name("rolled-back"),
  store: name("store"),
  sealed: name("sealed"),
  warning: name("warning"),
};

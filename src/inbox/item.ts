import type { Fingerprint } from "../message/fingerprint.ts";
import type { Message } from "../message/message.ts";
import type { Claim } from "../store/store.ts";
import type { Handler } from "./handler.ts";
import type { Processed } from "./outcome.ts";

/** One message on its way through the inbox, from hand-over to its outcome. */
export interface Item extends Claim {
  readonly message: Message;
  readonly fingerprint: Fingerprint;
  readonly handler: Handler;
  /** The source says it was handed over before: after an unclean death such a message is run with care. */
  readonly redelivered: boolean;
  /** How often another transaction was in its way. */
  conflicts: number;
  /** Its outcome; set once, by `settle`. */
  processed: Processed | undefined;
  readonly onSettled: (processed: Processed) => void;
}

/** Tells an item its outcome. Exactly once: a second telling is a defect of ours and is thrown. */
export function settle(item: Item, processed: Processed): void {
  if (item.processed !== undefined) throw new Error(`Message ${JSON.stringify(item.id)} was settled twice.`);
  item.processed = processed;
  item.onSettled(processed);
}

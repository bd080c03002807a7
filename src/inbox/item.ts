import type { Fingerprint } from "../message/fingerprint.ts";
import type { Message } from "../message/message.ts";
import type { Claim } from "../store/store.ts";
import type { LogPosition, RecordPosition } from "../store/log.ts";
import type { Lease } from "../store/pending.ts";
import type { Handler } from "./handler.ts";
import type { Processed } from "./outcome.ts";

/** A lane of pending messages in this worker's hands, until all it got with it are done. */
export interface Grant extends Lease {
  /** Keys of which a message was put off or left: their later messages of this taking are left too. */
  readonly stuck: Set<string>;
  /** A message of it was left because something was in its way: the lane is not taken again at once. */
  hindered: boolean;
  /** Aborted when the lease is lost: what runs under it is rolled back. */
  readonly lost: AbortSignal;
}

/** What is known of a message that was pending. */
export interface FromPending {
  readonly grant: Grant;
  readonly position: string;
  readonly attempts: number;
  readonly deferrals: number;
}

/** One message on its way through the inbox, from hand-over to its outcome. */
export interface Item extends Claim {
  readonly message: Message;
  readonly fingerprint: Fingerprint;
  readonly handler: Handler;
  /** The source says it was handed over before: after an unclean death such a message is run with care. */
  readonly redelivered: boolean;
  /** Where it comes from pending and not from a source. */
  readonly pending: FromPending | undefined;
  /** Where it comes from a log that only its owner may apply from; with a record's place, that stands for the claim. */
  readonly position?: LogPosition | undefined;
  /** How often another transaction was in its way. */
  conflicts: number;
  /** How often it was put off without being at fault. */
  deferrals: number;
  /** Its outcome; set once, by `settle`. A pending message that is left where it is gets none. */
  processed: Processed | undefined;
  readonly onSettled: (processed: Processed) => void;
}

/** With the cursor strategy: where the item stands. What was stored goes its way as any other message. */
export const recordOf = ({ position, pending }: Item): RecordPosition | undefined =>
  pending === undefined && position?.record !== undefined ? (position as RecordPosition) : undefined;

/** What must stay in order: messages of one key; with the cursor strategy all records of one log. */
export const orderOf = (item: Item): string | undefined => {
  const record = recordOf(item);
  return record === undefined ? item.message.key : `log ${record.log}`;
};

/** Tells an item its outcome. Exactly once: a second telling is a defect of ours and is thrown. */
export function settle(item: Item, processed: Processed): void {
  if (item.processed !== undefined) throw new Error(`Message ${JSON.stringify(item.id)} was settled twice.`);
  item.processed = processed;
  item.onSettled(processed);
}

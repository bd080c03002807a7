import { identityDigest } from "../message/identity.ts";
import type { Identity } from "../message/message.ts";
import { createRedaction, type RedactionOptions } from "../quarantine/redact.ts";
import { showPayload, type ShownPayload } from "../quarantine/shown-body.ts";
import type { PendingEntry, PendingFilter, PendingListOptions, PendingRow } from "../store/operator-store.ts";
import type { Store } from "../store/store.ts";

export interface PendingOptions extends RedactionOptions {
  readonly store: Store;
}

/** A message's identity, and whose it is. */
export interface ConsumersMessage extends Identity {
  readonly consumer: string;
}

/** A pending message for people: what is to be hidden is hidden. */
export interface ShownPending extends Omit<PendingEntry, "payload"> {
  readonly payload: ShownPayload;
}

/** Messages that are stored and not handled yet, for operators. Every call is a transaction of its own. */
export interface Pending {
  /** In the order of arrival; see `limit` and `after` for pages. */
  list(options?: PendingListOptions): Promise<readonly PendingRow[]>;
  count(filter?: PendingFilter): Promise<number>;
  /** `undefined` where the message is not pending. */
  show(message: ConsumersMessage): Promise<ShownPending | undefined>;
  /**
   * Lets one message that is scheduled for later run now. False: it is not scheduled, or a worker has it in hand.
   * Nothing else changes: attempts count on, and what waits behind another message goes on waiting.
   */
  retryNow(message: ConsumersMessage): Promise<boolean>;
  /** The same for all that fit; resolves with how many. */
  retryAllNow(filter: PendingFilter): Promise<number>;
}

/** What is pending. Throws `invalid-option` for what is no JSON pointer. */
export function createPending({ store, ...hidden }: PendingOptions): Pending {
  const redaction = createRedaction(hidden);
  const { operator } = store;
  const digestOf = ({ consumer, ...identity }: ConsumersMessage): string =>
    identityDigest(consumer, identity);
  return {
    list: (options = {}) => operator.listPending(options),
    count: (filter = {}) => operator.countPending(filter),
    async show(message) {
      const entry = await operator.showPending(digestOf(message));
      if (entry === undefined) return undefined;
      const { payload, headers, ...rest } = entry;
      return { ...rest, headers: redaction.headers(headers), payload: showPayload(redaction, payload) };
    },
    retryNow: async (message) => (await operator.hurry({ digest: digestOf(message) })) > 0,
    async retryAllNow(filter) {
      let moved = 0;
      for (;;) {
        const batch = await operator.hurry(filter);
        moved += batch;
        if (batch === 0) return moved;
      }
    },
  };
}

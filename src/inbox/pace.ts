/**
 * How many messages the next transaction may take. Two bounds: what fits into `maxTransactionMs` by the time messages
 * took lately, and what the lock conflicts allow.
 *
 * Messages with a key meet no other lane's rows, so they start at the full batch. Without a key two lanes may want the
 * same rows in another order: such lanes start at one message and grow while nothing is in the way. Measured on 1,000
 * random accounts, 8 lanes: fixed batches of 20 without a key fell to 185 messages/s in deadlocks.
 */
export interface Pace {
  limit(keyed: boolean): number;
  /**
   * A transaction that claimed `size` messages ended well; `ran` of them were new, and took `workMs` from the claim's
   * answer to the last handler.
   */
  ended(size: number, ran: number, workMs: number, keyed: boolean): void;
  /**
   * How long a transaction of this size, without a key, may wait for a lock, in milliseconds: about as long as the one
   * that holds it should need twice over. Measured with 8 lanes over 1,000 random accounts: 100 ms 4,200 messages/s,
   * 50 ms 6,400, 25 ms 9,000, 12 ms 10,500, 6 ms 8,700.
   */
  lockWaitMs(size: number): number;
  /** A transaction met another one's locks (deadlock, lock timeout, serialization failure). */
  conflicted(size: number, keyed: boolean): void;
}

export interface PaceOptions {
  readonly maxBatch: number;
  readonly maxTransactionMs: number;
}

export function createPace({ maxBatch, maxTransactionMs }: PaceOptions): Pace {
  // No time is known yet: the first transactions are small, and each may be four times the one before.
  let timed = 4;
  let messageMs = 0;
  // The time without waiting for others: slower is believed bit by bit, faster at once.
  let freeMs = 0;
  const keyedBound = conflictBound(maxBatch, maxBatch);
  const unkeyedBound = conflictBound(1, maxBatch);
  const bound = (keyed: boolean): ConflictBound => (keyed ? keyedBound : unkeyedBound);

  return {
    limit: (keyed) => Math.max(1, Math.min(maxBatch, Math.floor(timed), bound(keyed).limit())),
    ended(size, ran, workMs, keyed) {
      // Slower is believed at once, faster only bit by bit. Duplicates tell nothing of the handler.
      if (ran > 0) {
        const sample = workMs / ran;
        messageMs = Math.max(sample, messageMs * 0.8 + sample * 0.2);
        freeMs = Math.min(sample, freeMs * 0.95 + sample * 0.05);
      }
      const fits = messageMs > 0 ? maxTransactionMs / messageMs : maxBatch;
      timed = Math.max(1, Math.min(fits, Math.max(timed, size * 4), maxBatch));
      bound(keyed).ended(size);
    },
    lockWaitMs: (size) => Math.min(1_000, Math.max(12, Math.ceil(2 * freeMs * size))),
    conflicted(size, keyed) {
      bound(keyed).conflicted(size);
    },
  };
}

interface ConflictBound {
  limit(): number;
  ended(size: number): void;
  conflicted(size: number): void;
}

/**
 * Doubles after every four full transactions until the first conflict; from then on a conflict halves it and eight full
 * transactions without one add a quarter.
 */
function conflictBound(start: number, most: number): ConflictBound {
  let limit = start;
  let streak = 0;
  let met = false;
  return {
    limit: () => limit,
    ended(size) {
      if (limit >= most || size < limit) return;
      streak++;
      if (streak < (met ? 8 : 4)) return;
      streak = 0;
      limit = Math.min(most, limit + Math.max(1, met ? Math.floor(limit / 4) : limit));
    },
    conflicted(size) {
      streak = 0;
      met = true;
      // Several lanes may report one clash: only the size that clashed counts.
      limit = Math.max(1, Math.min(limit, Math.floor(size / 2)));
    },
  };
}

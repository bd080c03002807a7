/** One record that was handed over, until every message in it is settled. */
export interface LogEntry {
  readonly offset: bigint;
  /** How many of its messages are not settled. */
  open: number;
}

/**
 * What of one partition was handed over and settled, during one assignment. Offsets have gaps (compaction, transactions),
 * so only what was read counts; the position to commit is the lowest offset that is not settled.
 */
export interface PartitionLog {
  /** A record with so many messages is about to be handed over. Its offset must not be below `next`. */
  add(offset: bigint, messages: number): LogEntry;
  /** One message of a record is settled. */
  settle(entry: LogEntry): void;
  /** Everything below was handed over or is no record. */
  readTo(offset: bigint): void;
  /** Everything below is settled; `undefined` while nothing is known. */
  settledTo(): bigint | undefined;
  /** Where reading goes on; `undefined` while nothing is known. */
  next(): bigint | undefined;
  /** Records that are kept in mind: the lowest unsettled one and all read after it. */
  readonly tracked: number;
  /** Records with a message that is not settled. */
  readonly unsettled: number;
}

/** `start`: everything below is settled, as the group's committed offset says. */
export function createPartitionLog(start: bigint | undefined): PartitionLog {
  let entries: LogEntry[] = [];
  let head = 0;
  let unsettled = 0;
  let next = start;

  function forgetSettled(): void {
    while (head < entries.length && (entries[head] as LogEntry).open === 0) head++;
    // Cut now and then: each entry is moved a bounded number of times.
    if (head > 1_024 && head * 2 > entries.length) {
      entries = entries.slice(head);
      head = 0;
    }
  }

  return {
    add(offset, messages) {
      if (next !== undefined && offset < next) throw new Error(`Offset ${offset} was read before ${next}.`);
      const entry: LogEntry = { offset, open: messages };
      entries.push(entry);
      next = offset + 1n;
      if (messages > 0) unsettled++;
      else forgetSettled();
      return entry;
    },
    settle(entry) {
      if (entry.open === 0) throw new Error(`Offset ${entry.offset} was settled twice.`);
      entry.open--;
      if (entry.open > 0) return;
      unsettled--;
      forgetSettled();
    },
    readTo(offset) {
      if (next === undefined || offset > next) next = offset;
    },
    settledTo: () => entries[head]?.offset ?? next,
    next: () => next,
    get tracked() {
      return entries.length - head;
    },
    get unsettled() {
      return unsettled;
    },
  };
}

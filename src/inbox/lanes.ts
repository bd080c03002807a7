import { orderOf, recordOf, type Item } from "./item.ts";
import type { Pace } from "./pace.ts";

/** Queues of messages, each worked through by one transaction at a time. */
export interface Lanes {
  /** Puts a message into the lane of its key, or without one into the shortest. */
  submit(item: Item): void;
  /**
   * Lets messages of a key go on in front of all others of their lane. They are asked for when no other message of the
   * lane is being worked on, so that none of the key can have got in between.
   */
  again(key: string, take: () => readonly Item[]): void;
  /** Takes back what no lane has begun, in order. */
  takeUnstarted(): Item[];
  /** Resolves when nothing is queued and nothing is being worked on. */
  idle(): Promise<void>;
}

interface Lane {
  queue: Item[];
  /** The next item in `queue`; a queue is cut only now and then. */
  head: number;
  /** Messages that go first, to be asked for between two batches. */
  again: (() => readonly Item[])[];
  working: boolean;
}

/**
 * Spreads messages over `count` lanes. A lane that is free takes whatever has arrived, at most what the pace allows:
 * it never waits for more, so at a low rate a transaction has one message.
 */
export function createLanes(
  count: number,
  pace: Pick<Pace, "limit">,
  work: (items: readonly Item[]) => Promise<void>,
): Lanes {
  const lanes: Lane[] = Array.from({ length: count }, () => ({
    ...{ queue: [], head: 0, again: [], working: false },
  }));
  const waiting: (() => void)[] = [];
  let busyLanes = 0;

  const length = (lane: Lane): number => lane.queue.length - lane.head;

  const keyLane = (key: string): Lane => lanes[hashKey(key) % count] as Lane;

  function laneFor(item: Item): Lane {
    const key = orderOf(item);
    if (key !== undefined) return keyLane(key);
    return lanes.reduce((best, lane) =>
      length(lane) + Number(lane.working) < length(best) + Number(best.working) ? lane : best,
    );
  }

  function take(lane: Lane): readonly Item[] {
    const { queue, head } = lane;
    const first = queue[head] as Item;
    // Between the lanes of two logs only keys keep rows apart.
    const keyed = first.message.key !== undefined;
    const byRecord = recordOf(first) !== undefined;
    // What was handed over before may be what ended a process, so it is not mixed with what was not.
    const most = pace.limit(keyed);
    let end = head + 1;
    for (; end < queue.length && end - head < most; end++) {
      const item = queue[end] as Item;
      if (
        (item.message.key !== undefined) !== keyed ||
        (recordOf(item) !== undefined) !== byRecord ||
        item.redelivered !== first.redelivered ||
        (item.pending === undefined) !== (first.pending === undefined) ||
        item.handler !== first.handler
      )
        break;
    }
    const items = queue.slice(head, end);
    if (end === queue.length) {
      lane.queue = [];
      lane.head = 0;
    } else if (end > 4_096) {
      lane.queue = queue.slice(end);
      lane.head = 0;
    } else lane.head = end;
    return items;
  }

  function begin(lane: Lane): void {
    if (lane.working) return;
    lane.working = true;
    busyLanes++;
    void drain(lane);
  }

  async function drain(lane: Lane): Promise<void> {
    // What is handed over in the same turn is worked on together.
    await Promise.resolve();
    for (;;) {
      if (lane.again.length > 0) {
        const first = lane.again.splice(0).flatMap((takeThem) => takeThem());
        lane.queue = [...first, ...lane.queue.slice(lane.head)];
        lane.head = 0;
      }
      if (length(lane) === 0) break;
      await work(take(lane));
    }
    lane.working = false;
    busyLanes--;
    if (busyLanes === 0) for (const resolve of waiting.splice(0)) resolve();
  }

  return {
    submit(item) {
      const lane = laneFor(item);
      lane.queue.push(item);
      begin(lane);
    },
    again(key, takeThem) {
      const lane = keyLane(key);
      lane.again.push(takeThem);
      begin(lane);
    },
    takeUnstarted() {
      const items: Item[] = [];
      for (const lane of lanes) {
        items.push(...lane.queue.slice(lane.head));
        lane.queue = [];
        lane.head = 0;
      }
      return items;
    },
    idle: () =>
      busyLanes === 0
        ? Promise.resolve()
        : new Promise((resolve) => {
            waiting.push(resolve);
          }),
  };
}

/** FNV-1a over the key's UTF-16 units: spreads keys that differ in their last character only. */
function hashKey(key: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < key.length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193);
  return (hash ^ (hash >>> 15)) >>> 0;
}

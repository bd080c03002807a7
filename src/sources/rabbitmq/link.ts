import type { AmqpChannel, AmqpMessage } from "./client.ts";

/** One delivery of the broker that is not settled on its channel. */
export interface Unsettled {
  readonly tag: number;
  readonly bytes: number;
  /** When it arrived, by `performance.now()`. */
  readonly at: number;
  /** Messages in it that have no settlement yet. */
  open: number;
  /** One of its messages is to come again by way of the broker. */
  again: boolean;
  /** When its last message was settled; what is settled waits to be sent. */
  doneAt: number | undefined;
  /** It waited here for a retry: its time in hand says nothing of how fast messages are handled. */
  waited: boolean;
}

/**
 * One channel with what was delivered on it. Everything that is settled is settled here or, when the channel is gone,
 * nowhere: on a later channel the same tag is another message.
 */
export interface Link {
  readonly alive: boolean;
  readonly unsettled: number;
  readonly unsettledBytes: number;
  /** Takes a message that arrived; `messages` is how many it holds. */
  take(message: AmqpMessage, messages: number, at: number): Unsettled;
  /** One message of a delivery is settled. `flush` tells the broker. */
  settle(delivery: Unsettled, again: boolean): void;
  /**
   * Sends what `settle` collected. Returns how many could not be sent, since the channel is gone. Without `all` those behind
   * a message that is still being handled wait a while to leave with it in one frame: a frame for each message costs the
   * broker more than the message did.
   */
  flush(all: boolean): number;
  /** How many are settled and not sent. */
  readonly waiting: number;
  /** The channel is gone. */
  lose(): void;
}

// With fewer than these unsettled each may be all that keeps the broker from sending the next one.
const fewUnsettled = 64;
// A first message that does not get done holds nobody up: what is unsettled still passes it at 4,000 a second.
const unsettledPerMs = 4;
const longestWaitMs = 2_000;

/** `now`: the clock, in milliseconds, that `take` is given times of. */
export function createLink(
  channel: AmqpChannel,
  now: () => number,
  onSettled: (delivery: Unsettled) => void,
): Link {
  // In the order of their tags: a Map keeps the order of insertion.
  const open = new Map<number, Unsettled>();
  // Settled since the last flush.
  let done: Unsettled[] = [];
  // Those that wait for earlier ones, and some that have left with them, in the order they were settled.
  let behind: Unsettled[] = [];
  let waiting = 0;
  let bytes = 0;
  let lastTag = 0;
  let alive = true;
  // When the first of the unsettled became it.
  let movedAt = 0;

  function remove(delivery: Unsettled): void {
    open.delete(delivery.tag);
    bytes -= delivery.bytes;
    waiting--;
    onSettled(delivery);
  }

  /** One frame for everything up to the first message that is still being handled. */
  function ackBefore(): void {
    let last: number | undefined;
    let count = 0;
    for (const delivery of open.values()) {
      if (delivery.doneAt === undefined) break;
      last = delivery.tag;
      count++;
      remove(delivery);
    }
    if (last === undefined) return;
    movedAt = now();
    channel.ack(last, count > 1);
  }

  /** A frame for each message that has waited long enough. */
  function ackOverdue(all: boolean): void {
    const before = all ? Infinity : dueBefore();
    let end = 0;
    while (end < behind.length && isDue(behind[end]!, before)) end++;
    if (end === 0) return;
    const due = behind.slice(0, end).filter(({ tag }) => open.has(tag));
    behind = behind.slice(end);
    for (const delivery of due.sort((a, b) => a.tag - b.tag)) {
      channel.ack(delivery.tag, false);
      remove(delivery);
    }
  }

  const isDue = ({ tag, doneAt }: Unsettled, before: number): boolean => doneAt! <= before || !open.has(tag);

  /** What was settled before this has waited long enough for those before it. */
  function dueBefore(): number {
    const [first] = open.values();
    if (first === undefined || open.size < fewUnsettled) return Infinity;
    const time = now();
    const isStuck = time - Math.max(movedAt, first.at) >= open.size / unsettledPerMs;
    return isStuck ? Infinity : time - longestWaitMs;
  }

  function send(all: boolean): void {
    for (const delivery of done.splice(0)) {
      if (delivery.again) {
        channel.giveBack(delivery.tag);
        remove(delivery);
      } else behind.push(delivery);
    }
    ackBefore();
    ackOverdue(all);
  }

  return {
    get alive() {
      return alive;
    },
    get unsettled() {
      return open.size;
    },
    get unsettledBytes() {
      return bytes;
    },
    take({ tag, body }, messages, at) {
      // A delivery that the client lost would stay unsettled for as long as the channel lives.
      for (let lost = lastTag + 1; lost < tag; lost++) channel.giveBack(lost);
      lastTag = tag;
      const delivery = {
        tag,
        bytes: body.byteLength,
        at,
        open: messages,
        again: false,
        doneAt: undefined,
        waited: false,
      };
      open.set(tag, delivery);
      bytes += delivery.bytes;
      return delivery;
    },
    settle(delivery, again) {
      delivery.open--;
      if (again) delivery.again = true;
      if (delivery.open > 0 || delivery.doneAt !== undefined) return;
      delivery.doneAt = now();
      done.push(delivery);
      waiting++;
    },
    get waiting() {
      return waiting;
    },
    flush(all) {
      const late = waiting;
      if (late === 0) return 0;
      if (alive) {
        try {
          send(all);
          return 0;
        } catch {
          alive = false;
        }
      }
      done = [];
      behind = [];
      waiting = 0;
      return late;
    },
    lose() {
      alive = false;
      open.clear();
      bytes = 0;
    },
  };
}

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
  done: boolean;
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
   * a message that is still being handled wait for it, as long as they are few: they leave with it in one frame, and the
   * broker looks through all that is unsettled for each frame of one message.
   */
  flush(all: boolean): number;
  /** How many are settled and not sent. */
  readonly waiting: number;
  /** The channel is gone. */
  lose(): void;
}

export function createLink(channel: AmqpChannel, onSettled: (delivery: Unsettled) => void): Link {
  // In the order of their tags: a Map keeps the order of insertion.
  const open = new Map<number, Unsettled>();
  let done: Unsettled[] = [];
  let bytes = 0;
  let lastTag = 0;
  let alive = true;

  function remove(delivery: Unsettled): void {
    open.delete(delivery.tag);
    bytes -= delivery.bytes;
    onSettled(delivery);
  }

  /** One frame for everything up to the first message that is still being handled. */
  function ackBefore(): void {
    let last: number | undefined;
    let count = 0;
    for (const delivery of open.values()) {
      if (!delivery.done) break;
      last = delivery.tag;
      count++;
      remove(delivery);
    }
    if (last !== undefined) channel.ack(last, count > 1);
  }

  /** Returns what waits. */
  function send(list: readonly Unsettled[], all: boolean): Unsettled[] {
    for (const delivery of list) {
      if (!delivery.again) continue;
      channel.giveBack(delivery.tag);
      remove(delivery);
    }
    ackBefore();
    const rest = list.filter(({ tag }) => open.has(tag));
    if (!all && rest.length * 2 < open.size) return rest;
    for (const delivery of rest.sort((a, b) => a.tag - b.tag)) {
      channel.ack(delivery.tag, false);
      remove(delivery);
    }
    return [];
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
        done: false,
        waited: false,
      };
      open.set(tag, delivery);
      bytes += delivery.bytes;
      return delivery;
    },
    settle(delivery, again) {
      delivery.open--;
      if (again) delivery.again = true;
      if (delivery.open > 0 || delivery.done) return;
      delivery.done = true;
      done.push(delivery);
    },
    get waiting() {
      return done.length;
    },
    flush(all) {
      if (done.length === 0) return 0;
      const list = done;
      done = [];
      if (alive) {
        try {
          done = send(list, all);
          return 0;
        } catch {
          alive = false;
        }
      }
      return list.length;
    },
    lose() {
      alive = false;
      open.clear();
      bytes = 0;
    },
  };
}

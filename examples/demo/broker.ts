import type { ChildProcess } from "node:child_process";

/** What the broker sends to a consumer process. */
export interface ToConsumer {
  readonly deliveries: readonly {
    readonly tag: number;
    readonly body: string;
    readonly redelivered: boolean;
  }[];
}

/** What a consumer process sends to the broker. */
export type FromConsumer =
  | { readonly ready: true }
  | {
      readonly settled: readonly { readonly tag: number; readonly ack: boolean; readonly afterMs: number }[];
    };

/** One copy of a message on its way; a message that is sent twice has two. */
export interface Copy {
  readonly body: string;
  /** The broker's flag: handed over before, perhaps handled, perhaps not. */
  readonly redelivered: boolean;
}

export interface BrokerOptions {
  /** Most unsettled messages at one consumer. Default 50. */
  readonly prefetch?: number | undefined;
  /** Told of each acknowledgement. */
  readonly onAck?: ((copy: Copy) => void) | undefined;
}

export interface BrokerCounts {
  /** Hand-overs so far. */
  readonly deliveries: number;
  /** Those of them that carried the redelivered flag. */
  readonly redeliveries: number;
  readonly acks: number;
  /** Waiting for a consumer. */
  readonly ready: number;
  /** Handed over and not yet settled. */
  readonly inHand: number;
}

/** An at-least-once queue in this process. */
export interface Broker {
  publish(bodies: readonly string[], options?: { readonly redelivered?: boolean }): void;
  /** Delivers to a child process from when it says it is ready until it is gone. */
  serve(child: ChildProcess): void;
  /** How many deliveries the consumer has not settled. */
  inHand(child: ChildProcess): number;
  counts(): BrokerCounts;
  /** Resolves when everything that was published is acknowledged. */
  drained(): Promise<void>;
}

interface Consumer {
  readonly child: ChildProcess;
  readonly inHand: Map<number, Copy>;
}

/**
 * An at-least-once queue for consumer processes, such as any message broker is: it hands messages out in turn, and what
 * a consumer has not acknowledged when its connection breaks is delivered again, with the redelivered flag, to whoever
 * is there. It forgets a message only when it is acknowledged.
 */
export function createBroker({ prefetch = 50, onAck }: BrokerOptions = {}): Broker {
  const consumers = new Set<Consumer>();
  let ready: Copy[] = [];
  const waiting: (() => void)[] = [];
  let nextTag = 1;
  let delayed = 0;
  let deliveries = 0;
  let redeliveries = 0;
  let acks = 0;
  let pumping = false;

  const inHand = (): number => [...consumers].reduce((sum, consumer) => sum + consumer.inHand.size, 0);

  /** Hands out what there is once a turn, one to each consumer that has room, round and round. */
  function pump(): void {
    if (pumping) return;
    pumping = true;
    setImmediate(() => {
      pumping = false;
      const sending = new Map<Consumer, ToConsumer["deliveries"][number][]>();
      let at = 0;
      for (let given = true; given && at < ready.length;) {
        given = false;
        for (const consumer of consumers) {
          if (at === ready.length || consumer.inHand.size >= prefetch) continue;
          const copy = ready[at++]!;
          const tag = nextTag++;
          consumer.inHand.set(tag, copy);
          const batch = sending.get(consumer) ?? [];
          if (batch.push({ tag, ...copy }) === 1) sending.set(consumer, batch);
          deliveries++;
          if (copy.redelivered) redeliveries++;
          given = true;
        }
      }
      ready = ready.slice(at);
      // What a consumer that just died does not receive is delivered again when its connection is seen to be gone.
      for (const [{ child }, batch] of sending)
        child.send({ deliveries: batch } satisfies ToConsumer, () => undefined);
      if (ready.length + delayed + inHand() === 0) for (const resolve of waiting.splice(0)) resolve();
    });
  }

  function settle(consumer: Consumer, settled: Extract<FromConsumer, { settled: unknown }>["settled"]): void {
    for (const { tag, ack, afterMs } of settled) {
      const copy = consumer.inHand.get(tag);
      if (copy === undefined) continue;
      consumer.inHand.delete(tag);
      if (ack) {
        acks++;
        onAck?.(copy);
        continue;
      }
      delayed++;
      setTimeout(() => {
        delayed--;
        again([copy]);
      }, afterMs);
    }
    pump();
  }

  function again(copies: Iterable<Copy>): void {
    ready.unshift(...Array.from(copies, ({ body }) => ({ body, redelivered: true })));
    pump();
  }

  return {
    publish(bodies, { redelivered = false } = {}) {
      for (const body of bodies) ready.push({ body, redelivered });
      pump();
    },
    serve(child) {
      const consumer: Consumer = { child, inHand: new Map() };
      child.on("message", (message: FromConsumer | object) => {
        if ("settled" in message) settle(consumer, message.settled);
        if (!("ready" in message)) return;
        consumers.add(consumer);
        pump();
      });
      // Comes after everything the process had sent, also where it was killed.
      child.once("disconnect", () => {
        consumers.delete(consumer);
        again(consumer.inHand.values());
      });
    },
    inHand: (child) => [...consumers].find((consumer) => consumer.child === child)?.inHand.size ?? 0,
    counts: () => ({ deliveries, redeliveries, acks, ready: ready.length + delayed, inHand: inHand() }),
    drained() {
      const done = new Promise<void>((resolve) => waiting.push(resolve));
      pump();
      return done;
    },
  };
}

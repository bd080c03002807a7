import { appendFileSync, existsSync, readFileSync } from "node:fs";
import type { Counts, Handed, Published, Settled } from "./protocol.ts";

/** Whoever messages are handed to. */
export interface Consumer {
  /** Most deliveries it may hold; 0 once it wants no more. */
  prefetch: number;
  readonly hand: (deliveries: readonly Handed[]) => void;
}

/** An at-least-once queue whose messages outlive the process, in order by key. */
export interface Queue {
  publish(messages: readonly Published[]): void;
  join(consumer: Consumer): void;
  /** What it holds is handed to somebody else. */
  leave(consumer: Consumer): void;
  settle(consumer: Consumer, settled: readonly Settled[]): void;
  extend(consumer: Consumer, tags: readonly number[]): void;
  counts(): Counts;
}

interface Entry extends Published {
  readonly position: number;
  handed: { readonly to: Consumer; readonly tag: number; until: number } | undefined;
  before: boolean;
  notBefore: number;
}

/**
 * Opens the queue over its log. A message is handed over when no earlier one of its key waits or is with another
 * consumer. A consumer loses what it does not settle or extend within `leaseMs`.
 */
export function openQueue(log: string, leaseMs: number): Queue {
  const entries = new Map<number, Entry>();
  const consumers = new Set<Consumer>();
  let nextPosition = 1;
  // Unlike in any earlier life of the broker: a tag of that time is to be unknown.
  let nextTag = Math.floor(performance.timeOrigin + performance.now()) * 1_000;
  let refused = 0;
  let pumping = false;

  const add = (published: Published): void => {
    const position = nextPosition++;
    entries.set(position, { ...published, position, handed: undefined, before: false, notBefore: 0 });
  };
  if (existsSync(log)) {
    for (const line of readFileSync(log, "utf8").split("\n")) {
      if (line === "") continue;
      const written = JSON.parse(line) as { published?: Published[]; done?: number[] };
      written.published?.forEach(add);
      for (const position of written.done ?? []) entries.delete(position);
    }
    // Nothing says which of them had been handed over: a hint that is never missing.
    for (const entry of entries.values()) entry.before = true;
  }
  const write = (line: object): void => appendFileSync(log, `${JSON.stringify(line)}\n`);

  function pump(): void {
    if (pumping) return;
    pumping = true;
    setImmediate(() => {
      pumping = false;
      const now = performance.now();
      const loads = new Map([...consumers].map((consumer) => [consumer, 0]));
      for (const { handed } of entries.values()) {
        if (handed !== undefined) loads.set(handed.to, (loads.get(handed.to) ?? 0) + 1);
      }
      const sending = new Map<Consumer, Handed[]>();
      /** Who alone may have more of the key; `null`: nobody. */
      const owners = new Map<string, Consumer | null>();
      for (const entry of entries.values()) {
        const owner = owners.get(entry.key);
        if (entry.handed !== undefined) {
          owners.set(entry.key, owner === undefined || owner === entry.handed.to ? entry.handed.to : null);
          continue;
        }
        const to = owner === undefined ? leastLoaded(loads) : owner;
        if (!to || entry.notBefore > now || loads.get(to)! >= to.prefetch) {
          owners.set(entry.key, null);
          continue;
        }
        owners.set(entry.key, to);
        loads.set(to, loads.get(to)! + 1);
        const { id, key, body } = entry;
        const tag = nextTag++;
        const batch = sending.get(to) ?? [];
        if (batch.push({ id, key, body, tag, redelivered: entry.before }) === 1) sending.set(to, batch);
        Object.assign(entry, { before: true, handed: { to, tag, until: now + leaseMs } });
      }
      for (const [consumer, batch] of sending) consumer.hand(batch);
    });
  }

  function find(consumer: Consumer, tag: number): Entry | undefined {
    for (const entry of entries.values()) {
      if (entry.handed?.to === consumer && entry.handed.tag === tag) return entry;
    }
    return undefined;
  }

  setInterval(() => {
    const now = performance.now();
    for (const entry of entries.values()) {
      if (entry.handed !== undefined && entry.handed.until <= now) entry.handed = undefined;
    }
    pump();
  }, 20);

  return {
    publish(messages) {
      write({ published: messages });
      messages.forEach(add);
      pump();
    },
    join(consumer) {
      consumers.add(consumer);
      pump();
    },
    leave(consumer) {
      consumers.delete(consumer);
      for (const entry of entries.values()) if (entry.handed?.to === consumer) entry.handed = undefined;
      pump();
    },
    settle(consumer, settled) {
      const done: number[] = [];
      for (const { tag, kind, afterMs } of settled) {
        const entry = find(consumer, tag);
        if (entry === undefined) refused++;
        else if (kind === "ack") {
          entries.delete(entry.position);
          done.push(entry.position);
        } else {
          Object.assign(entry, { handed: undefined, notBefore: performance.now() + afterMs });
        }
      }
      if (done.length > 0) write({ done });
      pump();
    },
    extend(consumer, tags) {
      for (const tag of tags) {
        const entry = find(consumer, tag);
        if (entry?.handed !== undefined) entry.handed.until = performance.now() + leaseMs;
      }
    },
    counts: () => ({ unsettled: entries.size, refused }),
  };
}

function leastLoaded(loads: ReadonlyMap<Consumer, number>): Consumer | undefined {
  let best: Consumer | undefined;
  for (const [consumer, load] of loads) {
    if (load < consumer.prefetch && (best === undefined || load < loads.get(best)!)) best = consumer;
  }
  return best;
}

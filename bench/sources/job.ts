import type { Load } from "./messages.ts";

/** The clients that are measured; `memory` is the inbox without a broker. */
export type ClientName = "memory" | "rabbitmq-client" | "amqplib" | "confluent" | "kafkajs";

/**
 * What a consumer process does with each message: the inbox with a handler that uses `tx`, one autocommit update with no
 * inbox, or nothing.
 */
export type Way = "inbox" | "autocommit" | "drain";

/** What a consumer process is told by its first argument, as JSON. */
export interface Job {
  readonly way: Way;
  readonly client: ClientName;
  readonly load: Load;
  readonly databaseUrl: string;
  /** Holds the accounts, and the inbox's tables. */
  readonly schema: string;
  /** The broker's address: a URL, or `host:port` with commas between. */
  readonly address: string;
  /** The queue or topic, filled before the process starts. */
  readonly place: string;
  /** Most messages in hand at once; 0 for the inbox: what it takes by itself. */
  readonly inHand: number;
}

/** What a consumer process measured. */
export interface Result {
  /** From the first delivery to the last acknowledgement, in milliseconds. */
  readonly ms: number;
  readonly deliveries: number;
  /** Of the process, from its start: the most memory it held, in bytes, as the system counts it. */
  readonly maxRssBytes: number;
  /** Processor time of the process between the two, in milliseconds. */
  readonly cpuMs: number;
}

const stalledAfterMs = 60_000;

/** The time between the first delivery and the last of so many acknowledgements. */
export interface Stopwatch {
  /** Something was delivered. */
  delivered(): void;
  /** So many more were acknowledged. */
  acknowledged(count: number): void;
  /** Resolves with the last acknowledgement; rejects when none comes for a minute. */
  readonly finished: Promise<Result>;
}

export function stopwatch(deliveries: number): Stopwatch {
  let begun: { at: number; cpu: NodeJS.CpuUsage } | undefined;
  let left = deliveries;
  let finish: (result: Result) => void = () => undefined;
  let give: (error: Error) => void = () => undefined;
  const finished = new Promise<Result>((resolve, reject) => {
    finish = resolve;
    give = reject;
  });
  const stalled = setTimeout(
    () => give(new Error(`Nothing was acknowledged for ${stalledAfterMs} ms; ${left} were left.`)),
    stalledAfterMs,
  );
  return {
    delivered() {
      begun ??= { at: performance.now(), cpu: process.cpuUsage() };
    },
    acknowledged(count) {
      left -= count;
      stalled.refresh();
      if (left > 0 || begun === undefined) return;
      clearTimeout(stalled);
      const { user, system } = process.cpuUsage(begun.cpu);
      finish({
        ms: performance.now() - begun.at,
        deliveries: deliveries - left,
        maxRssBytes: process.resourceUsage().maxRSS * 1_024,
        cpuMs: (user + system) / 1_000,
      });
    },
    finished,
  };
}

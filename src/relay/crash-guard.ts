import { hash, randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { InboxError } from "../errors.ts";
import type { TakenEffect } from "../store/outbox.ts";
import type { Store } from "../store/store.ts";
import { createAlone, type Alone } from "./alone.ts";

/**
 * Finds the effect whose delivery kills its relay, as the inbox finds such messages. While nothing dies it costs a
 * heartbeat and no write an effect. Lanes that a dead relay left are sent with care: one effect at a time and alone in
 * its relay, each behind a committed "started" mark. A mark left by a dead relay is a crash of that effect alone.
 */
export interface CrashGuard {
  /** Names this relay. */
  readonly relayId: string;
  readonly alone: Alone;
  start(): Promise<void>;
  /** Lanes that a dead relay left. To be asked before taking; asks the database only if a relay has died lately. */
  abandoned(destination: string): Promise<ReadonlySet<number>>;
  /**
   * Runs a delivery alone behind its mark, and resolves with whether it was sent; with the error, and without running it,
   * if it has killed often enough. Rejects if the mark cannot be written.
   */
  carefully(taken: TakenEffect, deliver: () => Promise<boolean>): Promise<boolean | InboxError>;
  stop(): Promise<void>;
}

export interface CrashGuardOptions {
  readonly store: Store;
  readonly leaseMs: number;
  readonly maxCrashes: number;
  readonly storeFailed: (error: unknown) => void;
}

/** Under this name relays are kept among the workers. */
const consumer = "outbox:relay";

const none: ReadonlySet<number> = new Set();

export function createCrashGuard({ store, leaseMs, maxCrashes, storeFailed }: CrashGuardOptions): CrashGuard {
  const { workers, outboxOperator } = store;
  const relayId = randomUUID();
  const alone = createAlone();
  // A third of the lanes' lease: whoever finds a dead relay's lanes free knows by then that it is dead.
  const workerLeaseMs = Math.max(50, Math.floor(leaseMs / 3));
  let died = 0;
  let timer: NodeJS.Timeout | undefined;
  let beating: Promise<void> = Promise.resolve();

  async function beat(): Promise<void> {
    try {
      ({ died } = await workers.heartbeat(consumer, relayId, workerLeaseMs));
    } catch (error) {
      // A lease that runs out while the database is away makes this relay look dead: then care is taken, nothing is lost.
      storeFailed(error);
    }
  }

  /** The marks of others, once no living relay has one: its lease tells whether it lives. */
  async function marksOf(digest: string): Promise<number> {
    for (let waitedMs = 0; ; waitedMs += 100) {
      const { crashes, running } = await workers.markStarted(relayId, digest);
      if (running === 0 || waitedMs >= leaseMs) return crashes;
      await sleep(100);
    }
  }

  async function clear(digest: string, all: boolean): Promise<void> {
    try {
      await workers.clearStarted(relayId, digest, all);
    } catch (error) {
      // A mark too many may count as a crash of this effect if this process dies later: one chance fewer, no loss.
      storeFailed(error);
    }
  }

  return {
    relayId,
    alone,
    async start() {
      await workers.open(consumer, relayId, workerLeaseMs);
      await beat();
      timer = setInterval(() => {
        beating = beating.then(beat);
      }, workerLeaseMs / 3);
    },
    async abandoned(destination) {
      return died === 0 ? none : new Set(await outboxOperator.abandonedLanes(destination));
    },
    carefully: (taken, deliver) =>
      alone.run(async () => {
        const digest = markOf(taken.digest);
        const crashes = await marksOf(digest);
        if (crashes >= maxCrashes) {
          await clear(digest, true);
          return new InboxError("crashed", `The relay that sent this effect died ${crashes} times.`);
        }
        // Dying in here leaves the mark, which is how the next relay knows.
        const sent = await deliver();
        await clear(digest, sent && crashes > 0);
        return sent;
      }),
    async stop() {
      clearInterval(timer);
      await beating;
      try {
        await workers.close(relayId);
      } catch (error) {
        storeFailed(error);
      }
    },
  };
}

/** Marks are kept beside those of messages, whose digests must stay others: one name may be a consumer's and a destination's. */
const markOf = (digest: string): string => hash("sha256", `effect ${digest}`, "hex").slice(0, 32);

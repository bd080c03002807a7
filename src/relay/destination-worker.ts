import type { InboxError } from "../errors.ts";
import type { OutboxStore, TakenEffect } from "../store/outbox.ts";
import { relayTelemetry } from "../telemetry/relay-channels.ts";
import { again, isAgain, isSent, kindOf, refused, type Answer } from "./answer.ts";
import { createBreaker } from "./breaker.ts";
import type { CrashGuard } from "./crash-guard.ts";
import type { DestinationSettings } from "./destination-settings.ts";
import { handSize } from "./hand-size.ts";
import { heldLanes } from "./held-lanes.ts";
import { effectSender } from "./send-effects.ts";
import { createSettler } from "./settler.ts";
import { crashedVerdict, errorText, expiredVerdict, verdictOf } from "./verdict.ts";
import { createWake } from "./wake.ts";

/** How one destination does, as this relay sees it. */
export interface DestinationHealth {
  /** `paused`: it does not answer, and is asked again after a pause. */
  readonly state: "open" | "paused";
  readonly inHand: number;
  /** Since the relay was started. */
  readonly sent: number;
  /** Attempts that were not confirmed, since the relay was started. */
  readonly failed: number;
  /** Since the last confirmation, in milliseconds; `undefined` before the first. */
  readonly lastSentMs: number | undefined;
  /** Until it is asked again, in milliseconds; `undefined` while it is not paused. */
  readonly pausedForMs: number | undefined;
  /** How it failed last; `undefined` once it has confirmed an effect since. */
  readonly lastError: string | undefined;
}

/** Everything a relay does for one destination. Destinations share nothing but the database. */
export interface DestinationWorker {
  readonly name: string;
  /** Works until `stop`. */
  start(): void;
  /** Whether it waits for something to come in. */
  readonly idle: boolean;
  /** There may be something to send. */
  wake(): void;
  stop(graceMs: number): Promise<void>;
  health(): DestinationHealth;
}

export interface WorkerOptions {
  readonly store: OutboxStore;
  readonly relayId: string;
  readonly guard: Pick<CrashGuard, "abandoned" | "carefully" | "alone">;
  readonly leaseMs: number;
  readonly random: () => number;
  readonly storeFailed: (error: unknown) => void;
  readonly storeWorks: () => void;
}

const maxBytesInHand = 64 * 1024 * 1024;
const firstPauseMs = 1_000;
const longestPauseMs = 60_000;
const waitMs = 100;

export function destinationWorker(settings: DestinationSettings, options: WorkerOptions): DestinationWorker {
  const { name, batches, maxBatch, pauseAfter } = settings;
  const { store, relayId, guard, leaseMs, random, storeFailed, storeWorks } = options;
  const breaker = createBreaker({ pauseAfter, firstPauseMs, longestPauseMs, random });
  const lanes = heldLanes();
  const workWake = createWake();
  const roomWake = createWake();
  const hand = handSize(settings);
  let inHand = 0;
  let sentCount = 0;
  let failedCount = 0;
  let lastSentAt: number | undefined;
  let lastError: string | undefined;
  let idle = false;
  let stopping = false;
  let loop: Promise<void> | undefined;
  let careful: Promise<unknown> = Promise.resolve();
  let renewals: NodeJS.Timeout | undefined;

  const settler = createSettler({
    ...{ store, destination: name, relayId, lanes, storeFailed, storeWorks },
    settled(verdicts) {
      inHand -= verdicts.length;
      roomWake.wake();
    },
  });

  const sender = effectSender(settings, {
    maySend(taken) {
      const now = performance.now();
      return !stopping && lanes.holds(taken.lease, now) && breaker.allowance(now).kind !== "none";
    },
    sending(effects) {
      breaker.trying();
      relayTelemetry.sending.publish({ destination: name, effects });
    },
    answered,
    untried(taken) {
      inHand--;
      breaker.notTried();
      lanes.closeOne(taken.lease);
      settler.poke();
      roomWake.wake();
    },
    alone: guard.alone,
  });
  guard.alone.onOpen(() => sender.resume());

  function answered(taken: TakenEffect, answer: Answer, tookMs: number): void {
    hand.answered(tookMs);
    const healthy = breaker.healthy();
    if (isAgain(answer)) {
      failedCount++;
      lastError = errorText(answer.error);
      const forMs = breaker.failed(taken.digest, performance.now(), answer.pauseMs);
      if (forMs !== undefined) tell("paused", forMs, answer.error);
    } else {
      // One that refuses an effect is there.
      if (isSent(answer)) {
        sentCount++;
        lastError = undefined;
        lastSentAt = performance.now();
      } else failedCount++;
      if (breaker.answered()) tell("back", undefined, undefined);
    }
    relayTelemetry.answered.publish({ destination: name, effect: taken, answer: kindOf(answer) });
    settler.add(verdictOf(taken, answer, tookMs, healthy, settings, random));
    lanes.closeOne(taken.lease);
  }

  const tell = (state: "paused" | "back", forMs: number | undefined, error: unknown): void =>
    relayTelemetry.destination.publish({ destination: name, state, forMs, error });

  /** What a dead relay left is sent one by one; the first of a key that is not sent stops those behind it. */
  async function sendCarefully(suspects: readonly TakenEffect[]): Promise<void> {
    const stuckKeys = new Set<string>();
    for (const taken of suspects) {
      const { key } = taken;
      let sent: boolean | InboxError | undefined;
      if (!stopping && (key === undefined || !stuckKeys.has(key))) {
        sent = await guard
          .carefully(taken, () => sender.sendNow(taken))
          .catch((error: unknown) => {
            storeFailed(error);
            return undefined;
          });
      }
      if (sent === true) continue;
      if (key !== undefined) stuckKeys.add(key);
      if (sent === false) continue;
      if (sent !== undefined) settler.add(crashedVerdict(taken, sent, settings));
      else inHand--;
      lanes.closeOne(taken.lease);
      settler.poke();
      roomWake.wake();
    }
  }

  /** What needs no sending has its verdict at once. */
  function dispatch(effects: readonly TakenEffect[], abandoned: ReadonlySet<number>): void {
    const toSend: TakenEffect[] = [];
    const suspects: TakenEffect[] = [];
    const stuckKeys = new Set<string>();
    for (const taken of effects) {
      if (taken.key !== undefined && stuckKeys.has(taken.key)) {
        inHand--;
        lanes.closeOne(taken.lease);
      } else if (taken.expired) {
        settler.add(expiredVerdict(taken));
        lanes.closeOne(taken.lease);
      } else if (taken.sealed !== undefined) {
        const retryable = (taken.sealed as { retryable?: unknown }).retryable !== false;
        const answer = retryable ? again(taken.sealed, { fault: "destination" }) : refused(taken.sealed);
        settler.add(verdictOf(taken, answer, 0, true, settings, random));
        lanes.closeOne(taken.lease);
        if (taken.key !== undefined) stuckKeys.add(taken.key);
      } else (abandoned.has(taken.lease.lane) ? suspects : toSend).push(taken);
    }
    settler.poke();
    sender.add(toSend);
    if (suspects.length > 0) careful = Promise.all([careful, sendCarefully(suspects)]);
  }

  async function open(): Promise<void> {
    for (let tries = 0; !stopping; tries++) {
      try {
        return await settings.destination.open?.();
      } catch (error) {
        const forMs = Math.min(longestPauseMs, firstPauseMs * 2 ** tries);
        if (tries === 0) tell("paused", forMs, error);
        await roomWake.wait(forMs);
      }
    }
  }

  async function work(): Promise<void> {
    await open();
    while (!stopping) {
      const allowance = breaker.allowance(performance.now());
      if (allowance.kind === "none") {
        await roomWake.wait(allowance.forMs);
        continue;
      }
      const room = allowance.kind === "one" ? 1 : hand.size - inHand;
      const least = batches ? maxBatch : hand.size / 2;
      if (inHand > 0 && (allowance.kind === "one" || room < least)) {
        await roomWake.wait();
        continue;
      }
      if (!(await takeSome(batches ? Math.min(room, maxBatch) : room))) {
        idle = true;
        await workWake.wait();
        idle = false;
      }
    }
  }

  /** True: there may be more. */
  async function takeSome(maxEffects: number): Promise<boolean> {
    const asked = performance.now();
    try {
      const request = { relayId, leaseMs, maxLanes: 64, maxEffects, maxBytes: maxBytesInHand };
      const abandoned = await guard.abandoned(name);
      const { effects, more } = await store.take(name, request);
      storeWorks();
      if (effects.length === 0) {
        if (!more) await pause();
        return more;
      }
      lanes.add(effects, asked + leaseMs);
      inHand += effects.length;
      emptyInARow = 0;
      relayTelemetry.taken.publish({ destination: name, size: effects.length });
      dispatch(effects, abandoned);
      return true;
    } catch (error) {
      storeFailed(error);
      await pause();
      return false;
    }
  }

  let emptyInARow = 0;
  /** What waits may be in another's hands for long: asking for it at every turn would take the database's time. */
  async function pause(): Promise<void> {
    emptyInARow = Math.min(emptyInARow + 1, 100);
    if (emptyInARow > 20 && !stopping) await new Promise((resolve) => setTimeout(resolve, waitMs));
  }

  async function renew(): Promise<void> {
    const leases = lanes.all();
    if (leases.length === 0) return;
    const asked = performance.now();
    try {
      lanes.renewed(leases, await store.renew(name, leases, leaseMs), asked + leaseMs);
    } catch (error) {
      storeFailed(error);
    }
  }

  return {
    name,
    get idle() {
      return idle;
    },
    wake: () => workWake.wake(),
    start() {
      loop ??= work();
      renewals ??= setInterval(() => void renew(), leaseMs / 3);
    },
    async stop(graceMs) {
      stopping = true;
      workWake.wake();
      roomWake.wake();
      await loop;
      const abort = setTimeout(() => sender.abort(), graceMs);
      await careful;
      while (sender.running > 0) await roomWake.wait(20);
      clearTimeout(abort);
      await settler.flushed(graceMs);
      clearInterval(renewals);
      await settings.destination.close?.().catch(() => undefined);
    },
    health() {
      const allowance = breaker.allowance(performance.now());
      return {
        state: allowance.kind === "all" ? "open" : "paused",
        ...{ inHand, sent: sentCount, failed: failedCount, lastError },
        lastSentMs: lastSentAt === undefined ? undefined : performance.now() - lastSentAt,
        pausedForMs: allowance.kind === "none" ? allowance.forMs : undefined,
      };
    },
  };
}

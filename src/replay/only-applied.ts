import { setTimeout as pause } from "node:timers/promises";
import type { FingerprintMode } from "../message/fingerprint.ts";
import { createIdentityDigest } from "../message/identity.ts";
import { isRejected, type Message } from "../message/message.ts";
import type { Delivery, Intake, Source } from "../sources/source.ts";
import type { ReplayTarget } from "./policy.ts";
import type { ReplayStanding, ReplayTables } from "./replay-tables.ts";
import { wrappedSource } from "./wrapped-source.ts";

/**
 * Why a message is not corrected. `unknown`: the original has never taken it, or has forgotten it. `stored`: the original
 * has it in pending or in quarantine. `other-payload`: the original has applied another body under its identity.
 * `other-version`: another handler version has applied it than those that are to be corrected.
 */
export type SkipReason = "unknown" | "stored" | "other-payload" | "other-version";

/** How the original stands to a message; `applied` is what a correction takes. */
export function originalsWord(
  message: Message,
  standing: ReplayStanding,
  appliedBy: ReplayTarget["appliedBy"],
): SkipReason | "applied" {
  const { of_version: version, of_applied: applied, of_mode: mode, of_fingerprint: digest } = standing;
  if (version === null) return "unknown";
  if (!applied) return "stored";
  if (message.fingerprint(mode as FingerprintMode).digest !== digest) return "other-payload";
  return appliedBy === undefined || appliedBy.includes(version) ? "applied" : "other-version";
}

/** What filtering needs besides the source. */
export interface OnlyAppliedParts {
  readonly target: ReplayTarget & { readonly of: string };
  readonly tables: ReplayTables;
  readonly skipped: (reason: SkipReason) => void;
}

const askAgainMs = 1_000;

/**
 * The source, handing over only what the original has applied, which is looked up by primary key in batches; the rest is
 * settled. Reading before the claim is safe: what is applied stays so, and only a person forgets.
 */
export function onlyApplied(source: Source, { target, tables, skipped }: OnlyAppliedParts): Source {
  const digestOf = createIdentityDigest(target.of);
  const digestUnder = createIdentityDigest(target.consumer);
  const stopping = new AbortController();

  /** While the database is away nothing is known, and so nothing is handed over. */
  async function standings(messages: readonly Message[], intake: Intake): Promise<readonly ReplayStanding[]> {
    while (!stopping.signal.aborted) {
      try {
        return await tables.standing(messages.map(digestUnder), messages.map(digestOf), new Date(0));
      } catch (error) {
        intake.warn(`What ${target.of} has applied cannot be read: ${(error as Error).message}`);
        await pause(askAgainMs, undefined, { signal: stopping.signal }).catch(() => undefined);
      }
    }
    return [];
  }

  async function hand(intake: Intake, deliveries: readonly Delivery[]): Promise<void> {
    const messages = deliveries.flatMap(({ received }) => (isRejected(received) ? [] : [received]));
    const found = messages.length === 0 ? [] : await standings(messages, intake);
    if (stopping.signal.aborted) return;
    const others: Delivery[] = [];
    let at = 0;
    const chosen = deliveries.filter((delivery) => {
      // What is no message goes to quarantine, where it is seen.
      if (isRejected(delivery.received)) return true;
      const word = originalsWord(delivery.received, found[at++]!, target.appliedBy);
      if (word === "applied") return true;
      skipped(word);
      others.push(delivery);
      return false;
    });
    if (others.length > 0) await source.settle(others.map((delivery) => [delivery, { kind: "ack" }]));
    if (chosen.length > 0) await intake.deliver(chosen);
  }

  return wrappedSource(source, {
    start: (intake) => source.start({ ...intake, deliver: (deliveries) => hand(intake, deliveries) }),
    async stop() {
      stopping.abort();
      await source.stop();
    },
  });
}

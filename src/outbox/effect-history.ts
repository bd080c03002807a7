import type { EffectFacts, OutboxOperatorStore } from "../store/outbox-operator.ts";
import { effectDigest } from "./effect-id.ts";

/** Names an effect. */
export interface EffectName {
  readonly destination: string;
  readonly producer: string;
  readonly id: string;
  /** Default `""`. */
  readonly tenant?: string | undefined;
}

/**
 * What became of an effect. `waiting`: not sent yet. `refused`: waits for a decision. `sent`: its destination has
 * confirmed it. `expired`: its time was over. `discarded`: somebody decided so.
 */
export type EffectOutcome = "waiting" | "refused" | "sent" | "expired" | "discarded";

/** All that is known of one effect. Times are the database's. */
export interface EffectHistory extends Omit<EffectFacts, "digest"> {
  readonly outcome: EffectOutcome;
}

/** All that is known of one effect; `undefined` for one that was never asked for, or is forgotten. */
export async function effectHistory(
  operator: OutboxOperatorStore,
  { destination, tenant = "", producer, id }: EffectName,
): Promise<EffectHistory | undefined> {
  const digest = effectDigest(destination, { tenant, producer, id });
  const [facts] = await operator.facts([{ digest, destination, tenant, producer, id }]);
  if (facts === undefined) return undefined;
  const { digest: _, waiting, ...rest } = facts;
  const outcome = outcomeOf(facts);
  const waits = outcome === "waiting" || outcome === "refused";
  return { ...rest, waiting: waits ? waiting : undefined, outcome };
}

/** An end that is recorded counts: what waits was read before it, and may have gone meanwhile. */
export function outcomeOf({ waiting, attempts }: EffectFacts): EffectOutcome {
  const end = attempts.findLast(
    ({ outcome }) => outcome === "sent" || outcome === "expired" || outcome === "discarded",
  );
  if (end !== undefined) return end.outcome as EffectOutcome;
  return waiting?.state === "quarantined" || waiting?.state === "aside" ? "refused" : "waiting";
}

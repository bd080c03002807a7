import { InboxError } from "../errors.ts";
import { identityDigest } from "../message/identity.ts";
import type { Identity } from "../message/message.ts";
import { showValue } from "../message/show-value.ts";
import type { Store } from "../store/store.ts";
import { outcomeOf, type EffectName, type EffectOutcome } from "./effect-history.ts";
import { derivedEffectId, effectDigest } from "./effect-id.ts";

/** What became of an effect, and what its destination answered. */
export interface EffectResult {
  /** `unknown`: it was never asked for, or is forgotten. */
  readonly outcome: EffectOutcome | "unknown";
  /** What the destination answered, as text, cut to 4 KiB; `undefined` unless it was sent and answered something. */
  readonly result: string | undefined;
  /** The status it answered with, where it has such. */
  readonly status: number | undefined;
  /** When it was confirmed, discarded or found expired, by the database's clock. */
  readonly at: Date | undefined;
}

/**
 * What became of effects, by their names, in that order: so that a duplicate message can be answered with what was sent
 * for the first one. Reads, in a transaction of its own, what is committed.
 */
export async function effectResults(
  store: Store,
  effects: readonly EffectName[],
): Promise<readonly EffectResult[]> {
  if (typeof store?.outboxOperator?.facts !== "function") {
    throw new InboxError("invalid-option", "store must be a store, such as postgres(pool).");
  }
  const named = effects.map((effect, index) => {
    const { destination, tenant = "", producer, id } = effect;
    for (const [field, value] of Object.entries({ destination, tenant, producer, id })) {
      if (typeof value === "string") continue;
      throw new InboxError(
        "invalid-option",
        `effects[${index}].${field} must be a text, not ${showValue(value)}.`,
      );
    }
    const digest = effectDigest(destination, { tenant, producer, id });
    return { digest, destination, tenant, producer, id };
  });
  const different = new Map(named.map((effect) => [effect.digest, effect]));
  const known = new Map(
    (await store.outboxOperator.facts([...different.values()])).map((facts) => [facts.digest, facts]),
  );
  return named.map(({ digest }) => {
    const facts = known.get(digest);
    if (facts === undefined) {
      return { outcome: "unknown", result: undefined, status: undefined, at: undefined };
    }
    const outcome = outcomeOf(facts);
    const end = facts.attempts.findLast((attempt) => attempt.outcome === outcome);
    return { outcome, result: end?.result, status: end?.status, at: end?.at };
  });
}

/**
 * The id of an effect that a handler asked for without naming it: `index` is which of those effects it was, from 0. The
 * consumer is the inbox's.
 */
export const effectIdOf = (
  consumer: string,
  { tenant, producer, id }: Pick<Identity, "producer" | "id"> & { readonly tenant?: string | undefined },
  index = 0,
): string => derivedEffectId(identityDigest(consumer, { tenant: tenant ?? "", producer, id }), index);

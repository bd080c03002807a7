import type { Effect } from "../effect.ts";

/** What stands for an effect wherever its own id does not: the same on every attempt, and no other effect's. */
export const digestId = ({ digest }: Pick<Effect, "digest">): string => `sha256-${digest}`;

/**
 * The id under which the other side shall know an effect: its own, as long as that fits and names nothing else there. An id
 * of one tenant may be another tenant's, too.
 */
export const wireId = (
  effect: Pick<Effect, "id" | "tenant" | "digest">,
  fits: (id: string) => boolean,
): string => (effect.tenant === "" && fits(effect.id) ? effect.id : digestId(effect));

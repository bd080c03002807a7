import type { Retention } from "../store/retention.ts";
import type { Store } from "../store/store.ts";

/** How long identities of a consumer, or of one producer of it, are kept, and why they may not go now. */
export interface ConsumerRetention extends Retention {
  /** Sources that make no progress: nothing is forgotten until they do. */
  readonly waitsFor: readonly string[];
  /** How many sources are known. Without one nothing is forgotten: nobody tells that copies have come in. */
  readonly sources: number;
  /** What was applied before this may go; `undefined`: nothing yet. */
  readonly before: Date | undefined;
}

/** What is set for each consumer, with how far it may forget now. */
export async function readRetention(
  store: Pick<Store, "cleanup" | "retention">,
): Promise<readonly ConsumerRetention[]> {
  const [all, cuts] = [await store.retention.list(), await store.cleanup.cuts()];
  return all.map((one) => {
    const cut = cuts.find(({ consumer, producer }) => consumer === one.consumer && producer === one.producer);
    return { ...one, waitsFor: cut?.waitsFor ?? [], sources: cut?.sources ?? 0, before: cut?.before };
  });
}

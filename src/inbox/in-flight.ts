import { InboxError } from "../errors.ts";
import { settle, type Item } from "./item.ts";
import type { Processed } from "./outcome.ts";

/**
 * The messages this process is working on. A second copy of one of them follows the first instead of taking a
 * connection to wait for it in the database: it is answered after the first one's commit.
 */
export interface InFlight {
  /** True if the item is the first of its identity and shall be worked on. `again` is called when it may enter anew. */
  enter(item: Item, again: () => void): boolean;
  /** An item that entered has its outcome: answers the copies that followed it, or lets them enter anew. */
  leave(item: Item, processed: Processed): void;
}

interface Follower {
  readonly item: Item;
  readonly again: () => void;
}

export function createInFlight(): InFlight {
  const followers = new Map<string, Follower[] | undefined>();
  return {
    enter(item, again) {
      if (!followers.has(item.digest)) {
        followers.set(item.digest, undefined);
        return true;
      }
      const list = followers.get(item.digest);
      if (list === undefined) followers.set(item.digest, [{ item, again }]);
      else list.push({ item, again });
      return false;
    },
    leave(leader, processed) {
      const list = followers.get(leader.digest);
      followers.delete(leader.digest);
      for (const follower of list ?? []) follow(leader, processed, follower);
    },
  };
}

function follow(leader: Item, processed: Processed, { item, again }: Follower): void {
  if (processed.settle === "retry") {
    const error = new InboxError(
      "busy",
      "The first copy of this message was not handled; both are delivered again.",
    );
    return settle(item, { outcome: "busy", settle: "retry", retryAfterMs: processed.retryAfterMs, error });
  }
  const same =
    item.fingerprint.digest === leader.fingerprint.digest &&
    item.id === leader.id &&
    item.producer === leader.producer &&
    item.tenant === leader.tenant;
  // Another payload under the same id, or a first copy that is itself in conflict: the database compares.
  if (!same || processed.outcome === "conflict") return again();
  const stored = ["rejected", "stored", "late"].includes(processed.outcome);
  settle(item, { outcome: stored ? "stored" : "duplicate", settle: "ack" });
}

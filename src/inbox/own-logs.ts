import { InboxError } from "../errors.ts";
import type { LogPosition } from "../store/log.ts";
import type { LaneTransaction } from "../store/store.ts";
import type { Item } from "./item.ts";

/** Items by whether their log is still their owner's. */
export interface Owned {
  readonly owned: readonly Item[];
  readonly lost: readonly Item[];
}

/**
 * Asks, as the transaction's first statement, whether the items' logs are still their owners': what is owned now cannot be
 * taken before the transaction ends, so no old owner commits behind a new one.
 */
export async function ownLogs(tx: LaneTransaction, items: readonly Item[]): Promise<Owned> {
  const positions = new Map<string, LogPosition>();
  for (const { position } of items) if (position !== undefined) positions.set(nameOf(position), position);
  // One order for all: a taking that waits for one log must not be waited for by what holds another.
  const sorted = [...positions].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, position]) => position);
  const found = new Set((await tx.ownedLogs(sorted)).map(nameOf));
  const isOwned = ({ position }: Item): boolean => position === undefined || found.has(nameOf(position));
  return { owned: items.filter(isOwned), lost: items.filter((item) => !isOwned(item)) };
}

export const hasLog = ({ position }: Item): boolean => position !== undefined;

export const logLost = (): InboxError =>
  new InboxError("log-lost", "Another process reads this message's partition now; it applies the message.");

const nameOf = ({ log, epoch }: LogPosition): string => `${epoch} ${log}`;

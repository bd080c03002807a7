import { InboxError } from "../errors.ts";
import type { LogMove, RecordPosition } from "../store/log.ts";
import { standing } from "../store/standing.ts";
import type { LaneTransaction } from "../store/store.ts";
import { failUncounted } from "./fail.ts";
import { recordOf, settle, type Item } from "./item.ts";
import type { LaneContext } from "./lane-context.ts";
import { logLost } from "./own-logs.ts";

/** Records by where they stand to their logs' cursors; those that were passed are settled. */
export interface Followed {
  /** In order: the next ones of their logs. */
  readonly fresh: readonly Item[];
  /** Of logs that are another process's. */
  readonly lost: readonly Item[];
  /** Their predecessors are not done: they must not be applied. */
  readonly gaps: readonly Item[];
  readonly keysParked: boolean;
}

/**
 * In place of the claim, and as the transaction's first statement: locks the logs under their owners' epochs, so that no old
 * owner commits behind a new one, and tells by the cursors which records are new. The items must be in the order of their logs.
 */
export async function followItems(tx: LaneTransaction, items: readonly Item[]): Promise<Followed> {
  const positions = new Map<string, RecordPosition>();
  for (const position of items.map(positionOf)) positions.set(nameOf(position), position);
  // One order for all: a taking that waits for one log must not be waited for by what holds another.
  const sorted = [...positions].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, position]) => position);
  const { logs, keysParked } = await tx.followLogs(sorted);
  const applied = new Map(logs.map((log) => [nameOf(log), log.applied]));
  const fresh: Item[] = [];
  const lost: Item[] = [];
  const gaps: Item[] = [];
  for (const item of items) {
    const position = positionOf(item);
    const name = nameOf(position);
    if (!applied.has(name)) {
      lost.push(item);
      continue;
    }
    const stands = standing(position.record, applied.get(name));
    if (stands === "passed") settle(item, { outcome: "duplicate", settle: "ack" });
    else if (stands === "gap") gaps.push(item);
    else {
      fresh.push(item);
      applied.set(name, position.record.offset);
    }
  }
  return { fresh, lost, gaps, keysParked };
}

/** Answers what may not be applied now; it is delivered again, or waits in its place. */
export function failFollowed(context: LaneContext, { lost, gaps }: Pick<Followed, "lost" | "gaps">): void {
  failUncounted(context, lost, logLost());
  failUncounted(
    context,
    gaps,
    new InboxError("log-gap", "What stands before this record in its log is not done; it waits for that."),
  );
}

/** Where the cursors stand once these are done. */
export function movesPast(items: readonly Item[]): readonly LogMove[] {
  const moves = new Map<string, LogMove>();
  for (const { log, epoch, record } of items.map(positionOf))
    moves.set(log, { log, epoch, offset: record.offset });
  return [...moves.values()];
}

export const followsLog = (items: readonly Item[]): boolean =>
  items[0] !== undefined && recordOf(items[0]) !== undefined;

function positionOf(item: Item): RecordPosition {
  const position = recordOf(item);
  // Lanes never mix the strategies.
  if (position === undefined) throw new Error(`Message ${JSON.stringify(item.id)} has no place in a log.`);
  return position;
}

const nameOf = ({ log, epoch }: { readonly log: string; readonly epoch: string }): string =>
  `${epoch} ${log}`;

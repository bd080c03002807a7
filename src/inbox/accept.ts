import type { AcceptedRecord } from "../store/pending.ts";
import { classifyError, isStoreAway } from "./classify-error.ts";
import { busy, failUncounted, quarantineDoubtful } from "./fail.ts";
import { failFollowed, followsLog } from "./follow-items.ts";
import { recordOf, settle, type Item } from "./item.ts";
import { judgeSeen } from "./judge-seen.ts";
import type { LaneContext } from "./lane-context.ts";
import { createLanes, type Lanes } from "./lanes.ts";
import { storedMessage } from "./put-off.ts";
import { createStash } from "./stash.ts";
import { withoutStuck } from "./stuck.ts";

/** Stores messages: those of one key come to pending in the order they are submitted. */
export interface Acceptor {
  submit(item: Item): void;
  /** After a stop: waits for what is begun and gives back the rest. */
  finish(giveBack: (items: readonly Item[]) => void): Promise<void>;
}

/** `stopping`: aborted when no message waits for another process's claim any more. `onStored`: something was stored. */
export function createAcceptor(
  context: LaneContext,
  stopping: AbortSignal | undefined,
  onStored: () => void,
): Acceptor {
  const { maxBatch, lanes: count } = context.settings;
  const stash = stopping && createStash((key, take) => lanes.again(key, take), stopping);
  const own: LaneContext = {
    ...context,
    deferral: stash && stopping && { stopping, stash, soon: () => undefined },
  };
  const lanes: Lanes = createLanes(count, { limit: () => maxBatch }, (items) =>
    acceptItems(own, items).then(onStored),
  );
  return {
    submit: (item) => lanes.submit(item),
    async finish(giveBack) {
      const unstarted = lanes.takeUnstarted();
      await lanes.idle();
      giveBack([...(stash?.takeAll() ?? []), ...unstarted]);
    },
  };
}

/**
 * Stores identity and body of all items, in one statement that is a transaction, and settles them. What stands in its
 * way is found by halves. Dying before the answer redelivers them; those that were stored are found stored. Never
 * rejects.
 */
async function acceptItems(context: LaneContext, items: readonly Item[]): Promise<void> {
  const parts: (readonly Item[])[] = [items];
  for (let part = parts.shift(); part !== undefined; part = parts.shift()) {
    const free = withoutStuck(context, part);
    if (free.length > 0) parts.unshift(...(await attempt(context, free)));
  }
}

async function attempt(context: LaneContext, items: readonly Item[]): Promise<readonly (readonly Item[])[]> {
  const { store, name, settings } = context;
  if (followsLog(items)) return acceptRecords(context, items);
  try {
    const notNew = await store.pending.accept(name, settings.claimLockTimeoutMs, items.map(storedMessage));
    const met = new Map(notNew.map((one) => [one.digest, one]));
    for (const item of items) {
      const known = met.get(item.digest);
      const judgement = known === undefined ? "new" : judgeSeen(item, known);
      if (judgement === "new") settle(item, { outcome: "stored", settle: "ack", waitsFor: "worker" });
      else if (judgement === "conflict" || judgement === "late")
        await quarantineDoubtful(context, { item, doubt: judgement });
      else if (judgement === "gone") busy(context, item, "busy");
      else settle(item, { outcome: judgement, settle: "ack" });
    }
    return [];
  } catch (error) {
    return notStored(context, items, error);
  }
}

/** Records of logs: stored, and the cursors moved, all at once; else those that can be are tried again. */
async function acceptRecords(
  context: LaneContext,
  items: readonly Item[],
): Promise<readonly (readonly Item[])[]> {
  const { store, name, settings } = context;
  try {
    const records = items.flatMap((item) => {
      const position = recordOf(item);
      return position === undefined ? [] : [{ message: storedMessage(item), position }];
    });
    const answers = await store.pending.acceptRecords(name, settings.claimLockTimeoutMs, records);
    const all = answers.every((answer) => answer === "stored");
    const having = (kind: AcceptedRecord): readonly Item[] => items.filter((_, i) => answers[i] === kind);
    for (const item of having("passed")) settle(item, { outcome: "duplicate", settle: "ack" });
    failFollowed(context, { lost: having("lost"), gaps: having("gap") });
    if (!all) return [having("stored")];
    for (const item of items) settle(item, { outcome: "stored", settle: "ack", waitsFor: "worker" });
    return [];
  } catch (error) {
    return notStored(context, items, error);
  }
}

async function notStored(
  context: LaneContext,
  items: readonly Item[],
  error: unknown,
): Promise<readonly (readonly Item[])[]> {
  if (isStoreAway(error) && (await context.waitForStore?.(error)) === true) return [items];
  if (items.length > 1 && !isStoreAway(error)) {
    const middle = items.length >> 1;
    return [items.slice(0, middle), items.slice(middle)];
  }
  const [item] = items;
  if (item !== undefined && classifyError(error) === "conflict") busy(context, item, "busy", error);
  else failUncounted(context, items, error);
  return [];
}

import { setTimeout as sleep } from "node:timers/promises";
import { causes, hasCode, InboxError } from "../errors.ts";
import { telemetry } from "../telemetry/channels.ts";
import type { LaneTransaction } from "../store/store.ts";
import { asError, classifyError, isStoreAway } from "./classify-error.ts";
import { busy, failAlone, failUncounted, quarantineDoubtful, quarantineItem, type Doubtful } from "./fail.ts";
import { claimItems, findParked, holdItems, storeParked, type Claimed } from "./claim-items.ts";
import { commit, firstFailed, type Blame } from "./commit.ts";
import { failFollowed, followItems, followsLog, movesPast } from "./follow-items.ts";
import { createInterrupt, type Interrupt } from "./interrupt.ts";
import { orderOf, settle, type Item } from "./item.ts";
import type { LaneContext } from "./lane-context.ts";
import { leave } from "./leave.ts";
import { hasLog, logLost, ownLogs } from "./own-logs.ts";
import { storedMessage } from "./put-off.ts";
import { readPayloads, runHandlers, type Work } from "./run-handlers.ts";
import { withoutStuck } from "./stuck.ts";

/**
 * Works through messages of one lane until each has its outcome. All of them are tried in one transaction first; what
 * stands in its way is set aside, and the parts before it, it alone, and the parts behind it are tried in that order,
 * so that messages of one key keep theirs. No two items may have the same digest. Never rejects.
 */
export async function workLane(context: LaneContext, items: readonly Item[]): Promise<void> {
  const parts: (readonly Item[])[] = [items];
  for (let part = parts.shift(); part !== undefined; part = parts.shift()) {
    const free = withoutStuck(context, part);
    if (free.length > 0) parts.unshift(...(await attempt(context, free)));
  }
}

/**
 * Settles the items that were taken before and returns the others as they were, without running a handler: a claim
 * that is rolled back. Where that does not work all are returned. Never rejects.
 */
export async function settleTaken(context: LaneContext, items: readonly Item[]): Promise<readonly Item[]> {
  const doubtful: Doubtful[] = [];
  let tx: LaneTransaction | undefined;
  try {
    tx = await begin(context, undefined);
    if (!followsLog(items)) return (await claimItems(context, tx, items, doubtful)).fresh;
    await followItems(tx, items);
    return items.filter(({ processed }) => processed === undefined);
  } catch {
    return items;
  } finally {
    await tx?.rollback();
    for (const one of doubtful) await quarantineDoubtful(context, one);
  }
}

/** One transaction: claim, handle, commit. Settles what is final and returns what is to be tried next. */
async function attempt(context: LaneContext, items: readonly Item[]): Promise<readonly (readonly Item[])[]> {
  const { name } = context;
  const keyed = items.every((item) => item.message.key !== undefined);
  const size = items.length;
  let tx: LaneTransaction;
  try {
    telemetry.begun.publish({ consumer: name.consumer, size });
    // Without a key, lanes may meet in a circle: waiting for PostgreSQL to find it takes a second (deadlock_timeout).
    tx = await begin(context, size > 1 && !keyed ? context.pace.lockWaitMs(size) : undefined);
  } catch (error) {
    return storeAway(context, items, error);
  }

  const doubtful: Doubtful[] = [];
  let open = items;
  let claimed: Claimed;
  try {
    if (followsLog(items)) {
      const followed = await followItems(tx, items);
      if (followed.lost.length + followed.gaps.length > 0) {
        await tx.rollback();
        failFollowed(context, followed);
        return [followed.fresh];
      }
      open = followed.fresh;
      claimed = await findParked(context, tx, followed);
    } else {
      const { owned, lost } = items.some(hasLog) ? await ownLogs(tx, items) : { owned: items, lost: [] };
      if (lost.length > 0) {
        await tx.rollback();
        failUncounted(context, lost, logLost());
        return [owned];
      }
      if (items[0]?.pending === undefined) {
        const claims = await claimItems(context, tx, items, doubtful);
        // The others have their outcome, or get it below: what fails from here on is tried again without them.
        open = claims.fresh;
        claimed = await storeParked(context, tx, claims);
      } else claimed = await holdItems(context, tx, items);
    }
  } catch (error) {
    await tx.rollback();
    for (const one of doubtful) await quarantineDoubtful(context, one);
    return claimFailed(context, open, error, keyed);
  }
  telemetry.claimed.publish({ consumer: name.consumer, size, fresh: claimed.fresh.length });
  if (claimed.all.length === 0) {
    await tx.rollback();
    context.pace.ended(size, 0, 0, keyed);
    for (const one of doubtful) await quarantineDoubtful(context, one);
    return [];
  }
  const rest = await workAndCommit(context, tx, claimed, size, keyed);
  for (const one of doubtful) await quarantineDoubtful(context, one);
  return rest;
}

const begin = (
  { store, name, settings }: LaneContext,
  workLockTimeoutMs: number | undefined,
): Promise<LaneTransaction> =>
  store.begin(name, {
    isolation: settings.isolation,
    claimLockTimeoutMs: settings.claimLockTimeoutMs,
    workLockTimeoutMs,
    connectTimeoutMs: settings.connectTimeoutMs,
  });

async function workAndCommit(
  context: LaneContext,
  tx: LaneTransaction,
  { fresh, behind, all }: Claimed,
  size: number,
  keyed: boolean,
): Promise<readonly (readonly Item[])[]> {
  const { consumer } = context.name;
  const interrupt = createInterrupt(context.settings.handlerTimeoutMs, context.signal);
  const unwatch = watchLeases(fresh, interrupt);
  let lost: Error | undefined;
  tx.onLost((error) => {
    lost = error;
    interrupt.now(error);
  });
  try {
    const readable = await readPayloads(context, fresh);
    const follows = followsLog(all);
    if (follows && readable.unreadable.length > 0)
      return await withoutUnreadable(context, tx, all, readable.unreadable[0] as readonly [Item, InboxError]);
    const started = performance.now();
    const work: Work =
      readable.items.length === 0
        ? { kind: "done", results: [], statements: [] }
        : await runHandlers(context, tx, readable, interrupt);
    if (work.kind === "blamed") {
      const sent = work.index === undefined ? undefined : await firstFailed(work.earlier);
      await tx.rollback();
      if (lost !== undefined) return await storeAway(context, all, lost);
      return await setAside(context, all, readable.items, sent ?? work, keyed);
    }
    const ran = readable.items.slice(0, work.results.length);
    const unrun =
      readable.held.length === 0 ? readable.items.slice(work.results.length) : fresh.filter(isUnrun);
    const unreadable = readable.unreadable.map(([item]) => item);
    const fromPending = fresh[0]?.pending !== undefined;
    if (!fromPending && !follows && unrun.length + unreadable.length > 0)
      await tx.unclaim([...unrun, ...unreadable]);
    // A cursor passes no record that was not run, so what is behind one waits for the next transaction.
    const end = follows && unrun.length > 0 ? all.indexOf(unrun[0] as Item) : all.length;
    const stored = behind.filter((item) => all.indexOf(item) < end);
    if (follows && stored.length > 0) await tx.storeRecordsBehind(stored.map(storedMessage));
    telemetry.handled.publish({ consumer, size: ran.length });
    const workMs = performance.now() - started;
    // What was pending is claimed by being taken out of there, in this very transaction.
    const finished = follows
      ? tx.moveLogs(movesPast(all.slice(0, end)))
      : fromPending && ran.length > 0
        ? tx.finish(ran)
        : undefined;
    const failure = await commit(tx, work.statements, finished);
    if (failure !== undefined) {
      await tx.rollback();
      if (lost !== undefined && !isStoreAway(failure.failure)) return await storeAway(context, all, lost);
      return await setAside(context, all, readable.items, failure, keyed);
    }
    // Dying here redelivers all of them; the claims make the second run a no-op.
    telemetry.committed.publish({ consumer, size: ran.length, ms: performance.now() - started });
    // Where time was over, only as many would have fitted as were run.
    context.pace.ended(unrun.length > 0 ? ran.length : size, ran.length, workMs, keyed);
    ran.forEach((item, i) => settle(item, { outcome: "applied", settle: "ack", result: work.results[i] }));
    for (const item of stored) settle(item, { outcome: "stored", settle: "ack", waitsFor: "key" });
    for (const [item, error] of readable.unreadable)
      await quarantineItem(context, item, error.code, error, 1);
    return [follows ? all.slice(end) : unrun];

    function isUnrun(item: Item): boolean {
      return !ran.includes(item) && !unreadable.includes(item);
    }
  } catch (error) {
    await tx.rollback();
    return await setAside(context, all, all, { index: undefined, failure: error }, keyed);
  } finally {
    unwatch();
    interrupt.close();
  }
}

/** Takes out what the schema does not read: records of a log are done in order, and quarantine is a transaction of its own. */
async function withoutUnreadable(
  context: LaneContext,
  tx: LaneTransaction,
  all: readonly Item[],
  [item, error]: readonly [Item, InboxError],
): Promise<readonly (readonly Item[])[]> {
  await tx.rollback();
  if (all.length === 1) {
    await quarantineItem(context, item, error.code, error, 1);
    return [];
  }
  const at = all.indexOf(item);
  return [all.slice(0, at), [item], all.slice(at + 1)];
}

/** Interrupts the work when a lease that it stands on is lost. */
function watchLeases(items: readonly Item[], interrupt: Interrupt): () => void {
  const signals = new Set(items.flatMap(({ pending }) => (pending ? [pending.grant.lost] : [])));
  const onLost = (): void =>
    interrupt.now(new InboxError("lease-lost", "The lease of a lane ran out; another worker may have it."));
  for (const signal of signals) {
    if (signal.aborted) onLost();
    else signal.addEventListener("abort", onLost, { once: true });
  }
  return () => {
    for (const signal of signals) signal.removeEventListener("abort", onLost);
  };
}

/**
 * Decides what to try after a rollback. A conflict with other transactions: the same again, in halves. A message known
 * to be at fault: those before it, it alone, those behind it. Not known: halves, until it is alone.
 */
async function setAside(
  context: LaneContext,
  fresh: readonly Item[],
  ran: readonly Item[],
  { index, failure }: Blame,
  keyed: boolean,
): Promise<readonly (readonly Item[])[]> {
  if (isStoreAway(failure) && !(await isElsewhere(context, failure)))
    return storeAway(context, fresh, failure);
  if (hasCode(failure, "lease-lost")) {
    failUncounted(context, fresh, failure);
    return [];
  }
  const kind = classifyError(failure, context.settings.classifyError);
  if (kind === "conflict") return conflicted(context, fresh, failure, keyed, "transaction-conflict");
  if (fresh.length === 1) return failed(context, fresh[0] as Item, failure);
  const blamed = index === undefined ? undefined : ran[index];
  if (blamed === undefined) return rolledBack(context, halves(fresh), failure);
  const at = fresh.indexOf(blamed);
  return rolledBack(context, [fresh.slice(0, at), [blamed], fresh.slice(at + 1)], failure);
}

/**
 * Whether it is another database of the handler's that is away: then this one's lanes go on with other messages. Wrongly
 * taken for that is a failure of the environment, which costs the message a wait.
 */
async function isElsewhere({ store }: LaneContext, failure: unknown): Promise<boolean> {
  for (const link of causes(failure)) if (link instanceof InboxError) return false;
  return store.ping().then(
    () => true,
    () => false,
  );
}

async function claimFailed(
  context: LaneContext,
  items: readonly Item[],
  error: unknown,
  keyed: boolean,
): Promise<readonly (readonly Item[])[]> {
  if (isStoreAway(error)) return storeAway(context, items, error);
  const kind = classifyError(error);
  if (kind === "conflict") {
    const held = hasCode(error, "55P03");
    return conflicted(context, items, error, keyed, held ? "busy" : "transaction-conflict");
  }
  if (items.length === 1) return failed(context, items[0] as Item, error);
  return rolledBack(context, halves(items), error);
}

/** A message that failed alone; where its lane waits for it, it is tried again in its place. */
async function failed(
  context: LaneContext,
  item: Item,
  failure: unknown,
): Promise<readonly (readonly Item[])[]> {
  const waitMs = await failAlone(context, item, failure);
  if (waitMs === undefined) return [];
  const stopping = context.deferral?.stopping;
  const wait = (): Promise<void> => sleep(waitMs, undefined, { signal: stopping }).catch(() => undefined);
  await (context.aside === undefined ? wait() : context.aside(wait));
  if (stopping?.aborted !== true) return [[item]];
  // Those behind it in the lane must not run either: they wait together, and the stop gives them back.
  const key = orderOf(item);
  if (item.pending === undefined && key !== undefined) context.deferral?.stash.add(item, key, 0);
  else leave(context, item);
  return [];
}

/** Other transactions were in the way: again, smaller, a little later; one that stays in the way alone is `busy`. */
async function conflicted(
  context: LaneContext,
  items: readonly Item[],
  error: unknown,
  keyed: boolean,
  code: "busy" | "transaction-conflict",
): Promise<readonly (readonly Item[])[]> {
  context.pace.conflicted(items.length, keyed);
  if (items.length > 1) return rolledBack(context, halves(items), error);
  const item = items[0] as Item;
  item.conflicts++;
  // A claim that is held has been waited for already.
  if (code === "busy" || item.conflicts > context.settings.maxConflicts) {
    busy(context, item, code, error);
    return [];
  }
  await pause(2 ** Math.min(item.conflicts, 7) * context.settings.random());
  return [items];
}

/** The database is away: no message is at fault. Waits for it where the caller can, and tries the same again. */
async function storeAway(
  context: LaneContext,
  items: readonly Item[],
  error: unknown,
): Promise<readonly (readonly Item[])[]> {
  if (context.waitForStore !== undefined && (await context.waitForStore(error))) return [items];
  failUncounted(context, items, asError(error));
  return [];
}

function rolledBack(
  context: LaneContext,
  parts: readonly (readonly Item[])[],
  failure: unknown,
): readonly (readonly Item[])[] {
  if (telemetry.rolledBack.hasSubscribers) {
    const size = parts.reduce((sum, part) => sum + part.length, 0);
    telemetry.rolledBack.publish({
      consumer: context.name.consumer,
      size,
      splitInto: parts.length,
      error: failure,
    });
  }
  return parts;
}

function halves(items: readonly Item[]): readonly (readonly Item[])[] {
  const middle = items.length >> 1;
  return [items.slice(0, middle), items.slice(middle)];
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

import { hasCode, InboxError } from "../errors.ts";
import { telemetry } from "../telemetry/channels.ts";
import type { LaneTransaction } from "../store/store.ts";
import { asError, classifyError, isStoreAway } from "./classify-error.ts";
import { busy, failAlone, failUncounted, quarantineConflict, quarantineItem } from "./fail.ts";
import { createInterrupt } from "./interrupt.ts";
import { settle, type Item } from "./item.ts";
import { judgeSeen } from "./judge-seen.ts";
import type { LaneContext } from "./lane-context.ts";
import { readPayloads, runHandlers, type SentStatement, type Work } from "./run-handlers.ts";

/**
 * Works through messages of one lane until each has its outcome. All of them are tried in one transaction first; what
 * stands in its way is set aside, and the parts before it, it alone, and the parts behind it are tried in that order,
 * so that messages of one key keep theirs. No two items may have the same digest. Never rejects.
 */
export async function workLane(context: LaneContext, items: readonly Item[]): Promise<void> {
  const parts: (readonly Item[])[] = [items];
  for (let part = parts.shift(); part !== undefined; part = parts.shift()) {
    if (part.length > 0) parts.unshift(...(await attempt(context, part)));
  }
}

/**
 * Settles the items that were taken before and returns the others as they were, without running a handler: a claim
 * that is rolled back. Where that does not work all are returned. Never rejects.
 */
export async function settleTaken(context: LaneContext, items: readonly Item[]): Promise<readonly Item[]> {
  const conflicts: Item[] = [];
  let tx: LaneTransaction | undefined;
  try {
    tx = await begin(context, undefined);
    return await claim(context, tx, items, conflicts);
  } catch {
    return items;
  } finally {
    await tx?.rollback();
    for (const item of conflicts) await quarantineConflict(context, item);
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

  const conflicts: Item[] = [];
  let fresh: readonly Item[];
  try {
    fresh = await claim(context, tx, items, conflicts);
  } catch (error) {
    await tx.rollback();
    return claimFailed(context, items, error, keyed);
  }
  telemetry.claimed.publish({ consumer: name.consumer, size, fresh: fresh.length });
  if (fresh.length === 0) {
    await tx.rollback();
    context.pace.ended(size, 0, 0, keyed);
    for (const item of conflicts) await quarantineConflict(context, item);
    return [];
  }
  const rest = await workAndCommit(context, tx, fresh, size, keyed);
  for (const item of conflicts) await quarantineConflict(context, item);
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

/** Claims all items; settles those that were taken before and collects those whose payload differs. */
async function claim(
  context: LaneContext,
  tx: LaneTransaction,
  items: readonly Item[],
  conflicts: Item[],
): Promise<readonly Item[]> {
  // One order for all claims of all processes, so that two overlapping batches wait for each other in no circle.
  const claims = items.length === 1 ? items : [...items].sort((a, b) => (a.digest < b.digest ? -1 : 1));
  const { notNew } = await tx.claim(claims);
  if (notNew.length === 0) return items;
  const taken = new Map(notNew.map(({ digest, seen }) => [digest, { seen }]));
  const fresh: Item[] = [];
  for (const item of items) {
    const met = taken.get(item.digest);
    const judgement = met === undefined ? "new" : judgeSeen(item, met.seen);
    if (judgement === "new") fresh.push(item);
    else if (judgement === "conflict") conflicts.push(item);
    else if (judgement === "gone") busy(context, item, "busy");
    else settle(item, { outcome: judgement, settle: "ack" });
  }
  return fresh;
}

async function workAndCommit(
  context: LaneContext,
  tx: LaneTransaction,
  fresh: readonly Item[],
  claimed: number,
  keyed: boolean,
): Promise<readonly (readonly Item[])[]> {
  const { consumer } = context.name;
  const interrupt = createInterrupt(context.settings.handlerTimeoutMs, context.signal);
  let lost: Error | undefined;
  tx.onLost((error) => {
    lost = error;
    interrupt.now(error);
  });
  try {
    const readable = await readPayloads(context, fresh);
    const started = performance.now();
    const work: Work =
      readable.items.length === 0
        ? { kind: "done", results: [], statements: [] }
        : await runHandlers(context, tx, readable, interrupt);
    if (work.kind === "blamed") {
      const sent = work.index === undefined ? undefined : await firstFailed(work.earlier);
      await tx.rollback();
      if (lost !== undefined) return await storeAway(context, fresh, lost);
      return await setAside(context, fresh, readable.items, sent ?? work, keyed);
    }
    const ran = readable.items.slice(0, work.results.length);
    const unrun = readable.items.slice(work.results.length);
    const unreadable = readable.unreadable.map(([item]) => item);
    if (unrun.length + unreadable.length > 0) await tx.unclaim([...unrun, ...unreadable]);
    telemetry.handled.publish({ consumer, size: ran.length });
    const workMs = performance.now() - started;
    const failure = await commit(tx, work.statements);
    if (failure !== undefined) {
      await tx.rollback();
      if (lost !== undefined && !isStoreAway(failure.failure)) return await storeAway(context, fresh, lost);
      return await setAside(context, fresh, readable.items, failure, keyed);
    }
    // Dying here redelivers all of them; the claims make the second run a no-op.
    telemetry.committed.publish({ consumer, size: ran.length, ms: performance.now() - started });
    // Where time was over, only as many would have fitted as were run.
    context.pace.ended(unrun.length > 0 ? ran.length : claimed, ran.length, workMs, keyed);
    ran.forEach((item, i) => settle(item, { outcome: "applied", settle: "ack", result: work.results[i] }));
    for (const [item, error] of readable.unreadable)
      await quarantineItem(context, item, error.code, error, 1);
    return [unrun];
  } catch (error) {
    await tx.rollback();
    return await setAside(context, fresh, fresh, { index: undefined, failure: error }, keyed);
  } finally {
    interrupt.close();
  }
}

interface Blame {
  readonly index: number | undefined;
  readonly failure: unknown;
}

/**
 * Sends COMMIT right behind the returned statements: if one of them failed, the server answers ROLLBACK. Only a
 * statement that names its number of rows is waited for first.
 */
async function commit(tx: LaneTransaction, statements: readonly SentStatement[]): Promise<Blame | undefined> {
  if (statements.some(({ statement }) => statement.expectRows !== undefined)) {
    const blame = await firstFailed(statements);
    if (blame !== undefined) return blame;
  }
  try {
    await tx.commit();
    return undefined;
  } catch (error) {
    if (error instanceof InboxError && error.code === "commit-unknown")
      return { index: undefined, failure: error };
    return (await firstFailed(statements)) ?? { index: undefined, failure: error };
  }
}

/** The first returned statement that failed, or that changed another number of rows than it said. */
async function firstFailed(statements: readonly SentStatement[]): Promise<Blame | undefined> {
  for (const { index, statement, answer } of statements) {
    try {
      const { rowCount } = await answer;
      if (statement.expectRows === undefined || rowCount === statement.expectRows) continue;
      const text = `A statement changed ${rowCount} rows where it must change ${statement.expectRows}.`;
      return { index, failure: new InboxError("unexpected-row-count", text) };
    } catch (error) {
      return { index, failure: error };
    }
  }
  return undefined;
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
  if (isStoreAway(failure)) return storeAway(context, fresh, failure);
  const kind = classifyError(failure, context.settings.classifyError);
  if (kind === "conflict") return conflicted(context, fresh, failure, keyed, "transaction-conflict");
  if (fresh.length === 1) {
    await failAlone(context, fresh[0] as Item, failure);
    return [];
  }
  const blamed = index === undefined ? undefined : ran[index];
  if (blamed === undefined) return rolledBack(context, halves(fresh), failure);
  const at = fresh.indexOf(blamed);
  return rolledBack(context, [fresh.slice(0, at), [blamed], fresh.slice(at + 1)], failure);
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
  if (items.length === 1) {
    await failAlone(context, items[0] as Item, error);
    return [];
  }
  return rolledBack(context, halves(items), error);
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

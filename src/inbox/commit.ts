import { InboxError } from "../errors.ts";
import type { LaneTransaction } from "../store/store.ts";
import type { SentStatement } from "./run-handlers.ts";

/** What stood in the way of a commit, and whose it was where that can be told. */
export interface Blame {
  readonly index: number | undefined;
  readonly failure: unknown;
}

/**
 * Sends COMMIT right behind the returned statements: if one of them failed, the server answers ROLLBACK. Only a
 * statement that names its number of rows is waited for first.
 */
export async function commit(
  tx: LaneTransaction,
  statements: readonly SentStatement[],
  finished: Promise<void> | undefined,
): Promise<Blame | undefined> {
  finished?.catch(() => undefined);
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
    return (await firstFailed(statements)) ?? { index: undefined, failure: await reasonOf(finished, error) };
  }
}

/** Why `finish` failed, which made the server refuse the commit; else the commit's own error. */
const reasonOf = (finished: Promise<void> | undefined, error: unknown): Promise<unknown> =>
  finished === undefined
    ? Promise.resolve(error)
    : finished.then(
        () => error,
        (reason: unknown) => reason,
      );

/** The first returned statement that failed, or that changed another number of rows than it said. */
export async function firstFailed(statements: readonly SentStatement[]): Promise<Blame | undefined> {
  for (const { index, statement, answer, blamed } of statements) {
    try {
      const { rowCount } = await answer;
      if (statement.expectRows === undefined || rowCount === statement.expectRows) continue;
      const text = `A statement changed ${rowCount} rows where it must change ${statement.expectRows}.`;
      return { index, failure: new InboxError("unexpected-row-count", text) };
    } catch (error) {
      return { index: blamed === undefined ? index : blamed(error), failure: error };
    }
  }
  return undefined;
}

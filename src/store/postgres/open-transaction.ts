import { hasCode, InboxError } from "../../errors.ts";
import type { UserTransaction } from "./drivers/user-transaction.ts";

/**
 * Makes sure of a transaction that somebody else opened, before anything is written in it. Where the driver tells its
 * state, it is asked, and the answer is `undefined`. Elsewhere resolves with the `transaction_timestamp()` of its first
 * statement: two statements have the same one only inside one transaction, so the next statement must see it again.
 * Throws `not-a-transaction`. `caller`: the function that needs it.
 */
export async function openTransaction(tx: UserTransaction, caller: string): Promise<string | undefined> {
  const status = tx.status?.() ?? "unknown";
  if (status === "idle") throw notATransaction(caller, "The connection has no transaction open.");
  if (status === "failed") throw aborted(caller);
  if (status === "lost") throw notATransaction(caller, "The connection is lost.");
  if (status === "open") return undefined;
  try {
    const { rows } = await tx.query<{ now: string }>("select transaction_timestamp()::text as now");
    return rows[0]?.now ?? "";
  } catch (error) {
    // A driver may hear of the abort only after the error that caused it was handed out.
    if (hasCode(error, "25P02")) throw aborted(caller);
    throw error;
  }
}

export const aborted = (caller: string): InboxError =>
  notATransaction(caller, "The transaction is already aborted by an earlier error.");

export const notATransaction = (caller: string, why: string): InboxError =>
  new InboxError(
    "not-a-transaction",
    `${caller} needs an open transaction. ${why} Give it the client on which you ran BEGIN, not a pool.`,
  );

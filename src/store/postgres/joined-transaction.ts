import { hasCode, InboxError } from "../../errors.ts";
import type { ConsumerName, JoinedTransaction } from "../store.ts";
import type { QueryResult } from "../statement.ts";
import type { UserTransaction } from "./drivers/user-transaction.ts";
import { claimedFrom, claimStatement, type ClaimRow } from "./sql/claim.ts";
import type { PostgresSql } from "./sql/all.ts";

/**
 * The claim inside a transaction somebody else opened. That it is one is proved, not believed: two statements have the
 * same transaction_timestamp() only inside one transaction, so a pool, or a client outside a transaction, is refused
 * before anything is written.
 */
export function joinedTransaction(
  tx: UserTransaction,
  sql: PostgresSql,
  name: ConsumerName,
  claimLockTimeoutMs: number,
): JoinedTransaction {
  const query = async <Row>(text: string, values?: readonly unknown[]): Promise<QueryResult<Row>> => ({
    command: "",
    ...(await tx.query<Row>(text, values)),
  });
  const now = async (): Promise<string> => {
    const { rows } = await query<{ now: string }>("select transaction_timestamp()::text as now");
    return rows[0]?.now ?? "";
  };

  return {
    async prove() {
      const status = tx.status?.() ?? "unknown";
      if (status === "idle") throw notATransaction("The connection has no transaction open.");
      if (status === "failed") throw aborted();
      if (status === "lost") throw notATransaction("The connection is lost.");
      if (status === "open") return;
      const first = await now();
      if (first === "" || first !== (await now())) {
        throw notATransaction("Two statements ran in two transactions.");
      }
    },
    async claim(claims) {
      const { text, values } = claimStatement(sql.claim, name, claimLockTimeoutMs, claims);
      try {
        return claimedFrom(await query<ClaimRow>(text, values));
      } catch (error) {
        // A driver may hear of the abort only after the error that caused it was handed out.
        if (hasCode(error, "25P02")) throw aborted();
        throw error;
      }
    },
  };
}

const aborted = (): InboxError => notATransaction("The transaction is already aborted by an earlier error.");

const notATransaction = (why: string): InboxError =>
  new InboxError(
    "not-a-transaction",
    `processInTransaction needs an open transaction. ${why} Give it the client on which you ran BEGIN, not a pool.`,
  );

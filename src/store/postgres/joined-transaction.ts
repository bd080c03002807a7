import { hasCode } from "../../errors.ts";
import type { Protection } from "../protection.ts";
import type { ConsumerName, JoinedTransaction } from "../store.ts";
import type { QueryResult } from "../statement.ts";
import type { UserTransaction } from "./drivers/user-transaction.ts";
import { timeArray } from "./array.ts";
import { behindParked } from "./behind.ts";
import { aborted, notATransaction, openTransaction } from "./open-transaction.ts";
import { claimedFrom, claimStatement, notNewFrom, type ClaimRow } from "./sql/claim.ts";
import type { PostgresSql } from "./sql/all.ts";
import { storedParameters } from "./stored-messages.ts";

/**
 * The claim inside a transaction somebody else opened. That it is one is proved, not believed: two statements have the
 * same transaction_timestamp() only inside one transaction, so a pool, or a client outside a transaction, is refused
 * before anything is written.
 */
export function joinedTransaction(
  tx: UserTransaction,
  sql: PostgresSql,
  protection: Protection,
  name: ConsumerName,
  claimLockTimeoutMs: number,
  caller: string,
): JoinedTransaction {
  const query = async <Row>(text: string, values?: readonly unknown[]): Promise<QueryResult<Row>> => ({
    command: "",
    ...(await tx.query<Row>(text, values)),
  });
  async function first(text: string, values?: readonly unknown[]): Promise<QueryResult<ClaimRow>> {
    try {
      return await query<ClaimRow>(text, values);
    } catch (error) {
      // A driver may hear of the abort only after the error that caused it was handed out.
      if (hasCode(error, "25P02")) throw aborted(caller);
      throw error;
    }
  }

  return {
    async prove() {
      const first = await openTransaction(tx, caller);
      if (first === undefined) return;
      const second = await openTransaction(tx, caller);
      if (second !== undefined && (first === "" || first !== second)) {
        throw notATransaction(caller, "Two statements ran in two transactions.");
      }
    },
    async claim(claims) {
      const { text, values } = claimStatement(sql.claim, name, claimLockTimeoutMs, claims);
      return claimedFrom(await first(text, values));
    },
    async accept(messages) {
      const { identities, bodies } = await storedParameters(protection, name.consumer, messages);
      const values = [
        name.consumer,
        name.handlerVersion,
        claimLockTimeoutMs,
        ...identities,
        ...bodies,
        timeArray(messages),
      ];
      return notNewFrom(await first(sql.accept, values));
    },
    ...behindParked(query, sql, protection, name),
  };
}

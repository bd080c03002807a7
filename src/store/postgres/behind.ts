import type { StoredMessage } from "../pending.ts";
import type { Protection } from "../protection.ts";
import type { ConsumerName, JoinedTransaction } from "../store.ts";
import type { QueryResult } from "../statement.ts";
import { hexArray, textArray } from "./array.ts";
import type { PostgresSql } from "./sql/all.ts";
import { storedParameters } from "./stored-messages.ts";

type Query = <Row>(text: string, values: readonly unknown[]) => Promise<QueryResult<Row>>;

/** Asks for parked keys and stores claims behind them, in any transaction that claimed. */
export const behindParked = (
  query: Query,
  sql: PostgresSql,
  protection: Protection,
  name: ConsumerName,
): Pick<JoinedTransaction, "parkedKeys" | "storeBehind"> => ({
  async parkedKeys(keys) {
    const { rows } = await query<{ message_key: string }>(sql.parkedKeys, [name.consumer, textArray(keys)]);
    return new Set(rows.map((row) => row.message_key));
  },
  async storeBehind(messages: readonly StoredMessage[]) {
    const { identities, bodies } = await storedParameters(protection, name.consumer, messages);
    void query(sql.unprocess, [hexArray(messages.map(({ digest }) => digest))]);
    await query(sql.insertPending, [
      ...[name.consumer, "behind", null, 0, 0, null, null],
      ...identities,
      ...bodies,
    ]);
  },
});

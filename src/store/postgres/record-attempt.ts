import { InboxError } from "../../errors.ts";
import type { AttemptCount, ConsumerName, FailedAttempt } from "../store.ts";
import type { DriverConnection } from "./driver.ts";
import { wasPassed } from "./follow.ts";
import { safeText } from "./safe-text.ts";
import type { PostgresSql } from "./sql/all.ts";

const errorLimit = 16_384;

/**
 * Counts a failed attempt, in a transaction of its own. One of a record is counted under its log's lock: an old owner that
 * wakes up must not use up the attempts of a record that the new one handles.
 */
export async function recordAttempt(
  connection: DriverConnection,
  sql: PostgresSql,
  name: ConsumerName,
  attempt: FailedAttempt,
): Promise<AttemptCount> {
  const { position } = attempt;
  if (position === undefined) return countAttempt(connection, sql, name, attempt);
  void connection.query("begin isolation level read committed");
  await wasPassed(connection, sql, name.consumer, position);
  const count = await countAttempt(connection, sql, name, attempt);
  const { command } = await connection.query("commit");
  if (command !== "COMMIT") throw new InboxError("commit-refused", "The attempt was not counted.");
  return count;
}

async function countAttempt(
  connection: DriverConnection,
  sql: PostgresSql,
  { consumer, handlerVersion }: ConsumerName,
  { digest, tenant, producer, id, code, error }: FailedAttempt,
): Promise<AttemptCount> {
  const { rows } = await connection.query<{ attempts: number; elapsed_ms: number }>(sql.recordAttempt, [
    ...[digest, consumer, tenant, producer, id],
    ...[code, safeText(error, errorLimit), handlerVersion],
  ]);
  if (rows[0] === undefined) throw new InboxError("store-unavailable", "The attempt was not counted.");
  return { attempts: rows[0].attempts, elapsedMs: Number(rows[0].elapsed_ms) };
}

import type { Claim, ConsumerName } from "../store.ts";
import type { DriverConnection } from "./driver.ts";
import type { PostgresSql } from "./sql/all.ts";

/** `known`: the identity was there. `late`: it was not, and the message is older than what is forgotten. */
export type Reserved = "new" | "known" | "late";

/** Keeps the identity of a message whose body is stored elsewhere, in a transaction at read committed. */
export async function reserve(
  connection: DriverConnection,
  sql: PostgresSql,
  name: ConsumerName,
  { digest, tenant, producer, id, fingerprint, sentAt }: Claim,
): Promise<Reserved> {
  const { rows } = await connection.query<{ reserved: Reserved }>(sql.reserveSent, [
    ...[digest, name.consumer, tenant, producer, id],
    ...[fingerprint.digest, fingerprint.mode, name.handlerVersion],
    sentAt === undefined ? null : String(sentAt),
  ]);
  return rows[0]?.reserved ?? "known";
}

import { randomUUID } from "node:crypto";
import { createInbox, migrate, postgres } from "../src/index.ts";
import { admin, benchPool, freshSchema } from "./setup.ts";

export interface Bytes {
  /** Heap and index bytes a message in the inbox's ledger. */
  readonly inbox: number;
  /** The same for a table keyed by text. */
  readonly textbook: number;
}

/** Writes the same UUID ids into the ledger, through the inbox, and into a text-keyed table, and asks for their sizes. */
export async function bytesPerMessage(url: string, messages: number): Promise<Bytes> {
  const { schema, drop } = await freshSchema(url, 1);
  await admin(url, [
    `create table ${schema}.text_keyed (consumer text not null, producer text not null, message_id text not null,
       hash text not null, received_at timestamptz not null, processed_at timestamptz not null, version text not null,
       primary key (consumer, producer, message_id))`,
  ]);
  const pool = benchPool(url, schema, 6, true);
  await migrate(pool, { schema });
  const inbox = createInbox({ store: postgres(pool, { schema }), consumer: "accounting" });
  for (let done = 0; done < messages;) {
    const ids = Array.from({ length: Math.min(5_000, messages - done) }, () => randomUUID());
    done += ids.length;
    const outcomes = await inbox.processBatch(
      ids.map((id) => ({ producer: "payments", id, payload: id, key: id })),
      () => [],
    );
    if (outcomes.some(({ outcome }) => outcome !== "applied")) throw new Error("a message was not applied");
    await pool.query(
      `insert into text_keyed
         select 'accounting', 'payments', id, encode(sha256(id::bytea), 'hex'), now(), now(), '1' from unnest($1::text[]) as id`,
      [ids],
    );
  }
  const size = async (table: string): Promise<number> => {
    const { rows } = await pool.query<{ bytes: string }>(
      "select pg_relation_size($1::regclass) + pg_indexes_size($1::regclass) as bytes",
      [`${schema}.${table}`],
    );
    return Number(rows[0]?.bytes) / messages;
  };
  const result = { inbox: await size("message"), textbook: await size("text_keyed") };
  await pool.end();
  await drop();
  return result;
}

import type { Driver } from "../store/postgres/driver.ts";
import { driverFor } from "../store/postgres/drivers/detect.ts";
import { checkSchema } from "../store/postgres/migrate.ts";
import { quoteSchema } from "../store/postgres/schema-name.ts";
import type { MeasuredFacts } from "./facts.ts";

export interface MeasureOptions {
  /** The schema that holds the inbox's tables. Default `inbox`. */
  readonly schema?: string | undefined;
  /** How long to wait for a connection, in milliseconds. Default 5,000. */
  readonly connectTimeoutMs?: number | undefined;
}

/** What was measured, and from how much. */
export interface Measured extends MeasuredFacts {
  readonly rows: number;
  /** The days that the rate is an average of: at most seven, since the first row. */
  readonly days: number;
}

/**
 * One scan of the ledger, for all consumers: they share the table. Answers given to requests go with their identity, so
 * their bytes are spread over all rows.
 */
const measureSql = (schema: string): string => `
select count(*)::float8 as rows,
       count(*) filter (where processed_at >= now() - interval '7 days')::float8 as recent,
       least(7, extract(epoch from now() - min(processed_at)) / 86400)::float8 as days,
       (${["message", "message_closed", "answer"]
         .map((table) => `pg_total_relation_size('${schema.replaceAll("'", "''")}.${table}')`)
         .join(" + ")})::float8 as bytes
  from ${schema}.ledger`;

/** Too few rows say nothing about bytes a row: a page and an index's root are most of them. */
const fewestRows = 1_000;

/**
 * What an identity costs in this database, and how many come in a day. `undefined` with fewer than 1,000 identities, or
 * less than an hour of them.
 */
export async function measureLedger(
  pool: unknown,
  options: MeasureOptions = {},
): Promise<Measured | undefined> {
  const driver: Driver = driverFor(pool);
  const schema = options.schema ?? "inbox";
  const connection = await driver.connect(options.connectTimeoutMs ?? 5_000);
  try {
    await checkSchema(connection, schema);
    const { rows } = await connection.query<Row>(measureSql(quoteSchema(schema)));
    const row = rows[0];
    if (row === undefined || row.rows < fewestRows || row.days === null || row.days < 1 / 24)
      return undefined;
    return {
      rows: row.rows,
      days: row.days,
      bytesPerRow: row.bytes / row.rows,
      rowsPerDay: row.recent / row.days,
    };
  } finally {
    connection.release();
  }
}

interface Row {
  readonly rows: number;
  readonly recent: number;
  readonly days: number | null;
  readonly bytes: number;
}

import { InboxError } from "../errors.ts";
import { fingerprintMode, type FingerprintOptions } from "../message/fingerprint-mode.ts";
import { showValue } from "../message/show-value.ts";
import type { DriverConnection } from "../store/postgres/driver.ts";
import { driverFor } from "../store/postgres/drivers/detect.ts";
import { checkSchema } from "../store/postgres/migrate.ts";
import { quoteSchema } from "../store/postgres/schema-name.ts";
import { readCursor } from "./cursor.ts";
import { refused, sentMessage } from "./sent-fields.ts";
import type { SentDefaults, SentMessage, SentReading, SentSource, TimeRange } from "./sent.ts";

export interface SentQueryOptions extends SentDefaults {
  /** Names the list in errors and reports. Default `query`. */
  readonly name?: string | undefined;
  /** How the consumer compares payloads, for a query that gives them. Default: by their bytes. */
  readonly fingerprint?: FingerprintOptions | undefined;
  /** How long to wait for a connection, in milliseconds. Default 5,000. */
  readonly connectTimeoutMs?: number | undefined;
}

// Not "infinity": postgres.js makes a Date of whatever is sent as a time.
const firstTime = "0001-01-01T00:00:00.000Z";
const lastTime = "9999-12-31T23:59:59.999Z";

/** What a query's columns become, all of them text. */
interface Row {
  readonly id: string | null;
  readonly producer: string | null;
  readonly tenant: string | null;
  readonly time: string | null;
  readonly fingerprint: string | null;
  readonly fingerprint_mode: string | null;
  readonly payload: string | null;
  readonly payload_hex: string | null;
}

/**
 * The user's query, whatever types its columns have: as JSON, in which a bigint keeps its digits (`->>` gives them as
 * text) and a time its zone. $1 and $2 come first, so that they are times with a zone wherever the query uses them.
 */
const wrap = (query: string): string => `
with inbox_range as (select $1::timestamptz as since, $2::timestamptz as until)
select j->>'id' as id, j->>'producer' as producer, j->>'tenant' as tenant, j->>'time' as time,
       j->>'fingerprint' as fingerprint, j->>'fingerprint_mode' as fingerprint_mode, j->>'payload' as payload,
       j->>'payload_bytes' as payload_hex
  from (select to_jsonb(sent) as j
          from (
${query}
) as sent) as rows`;

/**
 * What a query says was sent: an outbox table, an event store, anything in PostgreSQL. Columns: `id` and, where there
 * are any, `producer`, `tenant`, `time` (timestamptz), and `payload` (text) or `payload_bytes` (bytea), or `fingerprint`
 * (64 hex digits) with `fingerprint_mode`; others are passed over. `$1` and `$2` are the range that is asked for, so that
 * a query may use an index: `where sent_at >= $1 and sent_at < $2`. Runs in a transaction that is read only and sees one
 * state of the database for as long as the comparison takes.
 */
export function sentQuery(pool: unknown, query: string, options: SentQueryOptions = {}): SentSource {
  if (typeof query !== "string" || query.trim() === "") {
    throw new InboxError("invalid-option", `query must be a select statement; got ${showValue(query)}.`);
  }
  // A semicolon at the end is what people paste.
  return fromRows(pool, wrap(query.trim().replace(/;\s*$/, "")), [], options);
}

export interface SentInboxOptions {
  /** Whose ledger it is. */
  readonly consumer: string;
  /** The schema that holds the tables of that inbox. Default `inbox`. */
  readonly schema?: string | undefined;
  /** Only messages of this producer. */
  readonly producer?: string | undefined;
  /** How long to wait for a connection, in milliseconds. Default 5,000. */
  readonly connectTimeoutMs?: number | undefined;
}

/**
 * What another consumer's inbox has applied, in this or another database: as if its messages had been sent to this one.
 * Their time is when it applied them.
 */
export function sentInbox(pool: unknown, options: SentInboxOptions): SentSource {
  const schema = options.schema ?? "inbox";
  const name = `inbox of ${options.consumer}`;
  return fromRows(pool, ledgerRows(quoteSchema(schema)), [options.consumer, options.producer ?? null], {
    name,
    connectTimeoutMs: options.connectTimeoutMs,
    check: (connection) => checkSchema(connection, schema),
  });
}

/** One scan of the ledger: its only index is that of the digests. */
const ledgerRows = (schema: string): string => `
select message_id as id, producer, tenant, to_json(processed_at)#>>'{}' as time,
       encode(fingerprint, 'hex') as fingerprint, fingerprint_mode, null::text as payload, null::text as payload_hex
  from ${schema}.ledger
 where processed_at >= $1::timestamptz and processed_at < $2::timestamptz
   and consumer = $3::text and ($4::text is null or producer = $4::text)`;

interface RowsOptions extends SentQueryOptions {
  readonly check?: (connection: DriverConnection) => Promise<void>;
}

function fromRows(
  pool: unknown,
  select: string,
  values: readonly unknown[],
  options: RowsOptions,
): SentSource {
  const driver = driverFor(pool);
  const name = options.name ?? "query";
  const mode = fingerprintMode(options.fingerprint ?? { by: "bytes" });

  async function* read(connection: DriverConnection, range: TimeRange): AsyncGenerator<SentMessage[]> {
    const bounds = [range.since?.toISOString() ?? firstTime, range.until?.toISOString() ?? lastTime];
    let number = 0;
    for await (const rows of readCursor<Row>(connection, select, [...bounds, ...values])) {
      yield rows.map((row) => {
        number += 1;
        const message = sentMessage({ ...row, ...renamed(row) }, options, mode);
        if (typeof message === "string") throw refused(name, `row ${number}`, message);
        return message;
      });
    }
  }

  return {
    name,
    async open(): Promise<SentReading> {
      const connection = await driver.connect(options.connectTimeoutMs ?? 5_000);
      let open = true;
      const close = async (): Promise<void> => {
        if (!open) return;
        open = false;
        // It changed nothing, so it does not matter how the transaction ends.
        await connection.query("rollback").catch(() => undefined);
        connection.release();
      };
      try {
        await options.check?.(connection);
        await connection.query("begin transaction isolation level repeatable read read only");
        // A cursor is planned for its first rows otherwise; all of them are read.
        await connection.query("set local cursor_tuple_fraction = 1");
        await connection.query("set local timezone = 'UTC'");
      } catch (error) {
        await close();
        throw error;
      }
      return { read: (range) => read(connection, range), close };
    },
  };
}

function renamed(row: Row): { fingerprintMode: string | null; payload: Uint8Array | string | undefined } {
  const { fingerprint_mode: fingerprintMode, payload, payload_hex: hex } = row;
  const bytes = hex?.startsWith("\\x") === true ? Buffer.from(hex.slice(2), "hex") : (hex ?? undefined);
  return { fingerprintMode, payload: bytes ?? payload ?? undefined };
}

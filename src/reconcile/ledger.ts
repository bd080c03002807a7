import { textArray, hexArray } from "../store/postgres/array.ts";
import type { Driver, DriverConnection } from "../store/postgres/driver.ts";
import { checkSchema } from "../store/postgres/migrate.ts";
import { quoteSchema } from "../store/postgres/schema-name.ts";
import { bucketCount, emptySums, type BucketSums } from "./bucket-sums.ts";
import { readCursor } from "./cursor.ts";
import { ledgerSql } from "./ledger-sql.ts";
import type { TimeRange } from "./sent.ts";

/** Which of the consumer's applied messages are looked at. */
export interface AppliedFilter {
  readonly producers: readonly string[];
  readonly tenant: string | undefined;
  /** By the time they were applied, by the clock of the consumer's database. */
  readonly range: TimeRange;
}

/** One applied message. */
export interface AppliedRow {
  readonly digest: string;
  readonly tenant: string;
  readonly producer: string;
  readonly message_id: string;
  readonly processed_at: Date;
}

/** What the consumer has of one identity. */
export interface Standing {
  /** The place of the digest among those asked for. */
  readonly n: number;
  /** Whether the identity is in the ledger. */
  readonly there: boolean;
  readonly processed_at: Date | null;
  readonly tenant: string | null;
  readonly producer: string | null;
  readonly message_id: string | null;
  readonly fingerprint: string | null;
  readonly fingerprint_mode: string | null;
  /** Its state in pending, if it is there. */
  readonly pending: string | null;
  /** Its entry in quarantine, an open one before others. */
  readonly entry: string | null;
  readonly entry_status: string | null;
}

/** The consumer's side of a comparison. */
export interface Ledger {
  now(): Promise<Date>;
  sums(filter: AppliedFilter, salt: Uint8Array, payloads: boolean): Promise<BucketSums>;
  /** The applied messages of the buckets whose bit is set. */
  rows(filter: AppliedFilter, buckets: Uint8Array): AsyncIterable<readonly AppliedRow[]>;
  standing(digests: readonly string[]): Promise<readonly Standing[]>;
}

/** Each call takes a connection of its own from the pool; checks the schema first. */
export function ledgerOf(
  driver: Driver,
  { schema, consumer, connectTimeoutMs }: { schema: string; consumer: string; connectTimeoutMs: number },
): Ledger {
  const sql = ledgerSql(quoteSchema(schema));
  let checked = false;

  async function connect(): Promise<DriverConnection> {
    const connection = await driver.connect(connectTimeoutMs);
    if (checked) return connection;
    try {
      await checkSchema(connection, schema);
      checked = true;
      return connection;
    } catch (error) {
      connection.release();
      throw error;
    }
  }

  async function ask<Row>(text: string, values: readonly unknown[]): Promise<readonly Row[]> {
    const connection = await connect();
    try {
      return (await connection.query<Row>(text, values)).rows;
    } finally {
      connection.release();
    }
  }

  const filterValues = ({ producers, tenant, range }: AppliedFilter): readonly unknown[] => [
    consumer,
    textArray(producers),
    tenant ?? null,
    range.since?.toISOString() ?? "-infinity",
    range.until?.toISOString() ?? "infinity",
  ];

  return {
    async now() {
      const [row] = await ask<{ now: Date }>(sql.now, []);
      return row!.now;
    },
    async sums(filter, salt, payloads) {
      const sums = emptySums();
      const text = payloads ? sql.appliedPayloadSums : sql.appliedSums;
      const values = [...filterValues(filter), Buffer.from(salt).toString("hex")];
      for (const row of await ask<SumsRow>(text, values)) {
        sums.counts[row.bucket] = row.entries;
        sums.high[row.bucket] = BigInt.asUintN(64, BigInt(row.high));
        sums.low[row.bucket] = BigInt.asUintN(64, BigInt(row.low));
      }
      return sums;
    },
    async *rows(filter, buckets) {
      const connection = await connect();
      try {
        await connection.query("begin read only");
        await connection.query("set local cursor_tuple_fraction = 1");
        yield* readCursor<AppliedRow>(connection, sql.appliedRows, [
          ...filterValues(filter),
          bitsOf(buckets).toString("hex"),
        ]);
        await connection.query("rollback");
      } finally {
        // Whatever is still open on it is closed with it.
        connection.release();
      }
    },
    standing: (digests) => ask<Standing>(sql.standing, [hexArray(digests)]),
  };
}

interface SumsRow {
  readonly bucket: number;
  readonly entries: number;
  readonly high: string;
  readonly low: string;
}

/** As `get_bit` reads them: the lowest bit of the first byte is bucket 0. */
function bitsOf(buckets: Uint8Array): Buffer {
  const bits = Buffer.alloc(bucketCount / 8);
  for (let bucket = 0; bucket < bucketCount; bucket++) {
    if (buckets[bucket] === 1) bits[bucket >> 3]! |= 1 << (bucket & 7);
  }
  return bits;
}

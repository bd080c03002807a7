import { randomUUID } from "node:crypto";
import { resolve } from "node:path";
import pg from "pg";
import { startLocalPostgres } from "../src/local-postgres/local-postgres.ts";

export interface Server {
  readonly url: string;
  stop(): Promise<void>;
}

/** DATABASE_URL, or the PostgreSQL that npm ships, with its settings as they come: fsync and synchronous_commit on. */
export async function benchServer(): Promise<Server> {
  const given = process.env["DATABASE_URL"];
  if (given !== undefined && given !== "") return { url: given, stop: () => Promise.resolve() };
  return startLocalPostgres({
    directory: resolve(".cache", "bench-server"),
    settings: { shared_buffers: "256MB", max_wal_size: "4GB" },
  });
}

/** One update each: adds 1 to a random account. */
export interface Payment {
  readonly id: string;
  /** JSON, as bytes off a broker's connection. */
  readonly payload: Buffer;
}

/** What a handler reads of a payment's payload. */
export const accountIn = (payload: string): number => (JSON.parse(payload) as { account: number }).account;

/** A seeded generator (mulberry32), so that a run can be repeated. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** Makes payments over random accounts. Their bytes are made before, since a broker's are not the consumer's work. */
export function paymentMaker(accounts: number, random: () => number): (count: number) => Payment[] {
  const payloads = Array.from({ length: accounts }, (_, i) =>
    Buffer.from(
      JSON.stringify({ account: i + 1, delta: 1, note: `payment to ${i + 1}`, pad: "x".repeat(100) }),
    ),
  );
  return (count) =>
    Array.from({ length: count }, () => ({
      id: randomUUID(),
      payload: payloads[Math.floor(random() * accounts)] as Buffer,
    }));
}

/** A schema with a fresh account table; dropped by `drop`. */
export async function freshSchema(
  url: string,
  accounts: number,
): Promise<{ schema: string; drop: () => Promise<void> }> {
  const schema = `bench_${randomUUID().replaceAll("-", "")}`;
  await admin(url, [
    `create schema ${schema}`,
    `create table ${schema}.account (id int primary key, balance bigint not null default 0) with (fillfactor = 50)`,
    `insert into ${schema}.account (id) select generate_series(1, ${accounts})`,
    `vacuum analyze ${schema}.account`,
    "checkpoint",
  ]);
  return { schema, drop: () => admin(url, [`drop schema ${schema} cascade`]) };
}

/** The table that a consumer written by hand would use. */
export const textbookTable = (schema: string): string =>
  `create table ${schema}.inbox_message (consumer text not null, message_id text not null,
     received_at timestamptz not null default now(), processed_at timestamptz, primary key (consumer, message_id))`;

export async function admin(url: string, statements: readonly string[]): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    for (const statement of statements) await client.query(statement);
  } finally {
    await client.end();
  }
}

/** The sum of all balances: what really took effect. */
export async function total(pool: pg.Pool): Promise<number> {
  const { rows } = await pool.query<{ total: string }>("select sum(balance)::bigint as total from account");
  return Number(rows[0]?.total ?? 0);
}

export const benchPool = (url: string, schema: string, max: number, pipeline: boolean): pg.Pool =>
  new pg.Pool({ connectionString: url, options: `-c search_path=${schema}`, max, pipeline });

export const median = (values: readonly number[]): number => quantile(values, 0.5);

/** The value below which this part of the values lies. */
export function quantile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN;
}

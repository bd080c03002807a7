import { InboxError } from "../../errors.ts";
import type { Driver, DriverConnection } from "./driver.ts";
import { driverFor } from "./drivers/detect.ts";
import { currentVersion, migrations } from "./migrations/all.ts";
import { quoteSchema } from "./schema-name.ts";

/** Where to install, and how long to wait. */
export interface MigrateOptions {
  /** The schema that holds the inbox's tables. Default `inbox`. */
  readonly schema?: string | undefined;
  /** How long to wait for a connection, in milliseconds. Default 10,000. */
  readonly connectTimeoutMs?: number | undefined;
}

/** What `migrate` found and did. */
export interface MigrateResult {
  /** The version found, 0 where there was no inbox. */
  readonly from: number;
  readonly to: number;
  /** The names of the steps that ran, in order. */
  readonly applied: readonly string[];
}

/**
 * Brings the schema to this release's version, in one transaction: all steps or none. Any number of processes may call
 * it at once; one works, the others wait and find nothing to do. Throws `schema-newer` if a later release was here.
 */
export async function migrateSchema(driver: Driver, options: MigrateOptions = {}): Promise<MigrateResult> {
  const name = options.schema ?? "inbox";
  const schema = quoteSchema(name);
  const connection = await driver.connect(options.connectTimeoutMs ?? 10_000);
  try {
    await connection.query("begin");
    // Held until the transaction ends, so it works through a transaction-mode pooler.
    await connection.query("select pg_advisory_xact_lock(hashtextextended($1::text, 0))", [
      `transactional-inbox ${name}`,
    ]);
    // Not "create schema if not exists": that asks for the right to create even where the schema is there.
    const { rows: found } = await connection.query("select 1 from pg_namespace where nspname = $1::text", [
      name,
    ]);
    if (found.length === 0) await connection.query(`create schema ${schema}`);
    await connection.query(createMigrationTable(schema));
    const from = await readVersion(connection, schema);
    if (from > currentVersion) throw newerSchema(name, from);
    const pending = migrations.slice(from);
    for (const step of pending) {
      // Without values a text may hold many statements; all are part of the transaction that is open.
      await connection.query(step.sql(schema));
      await connection.query(`insert into ${schema}.migration (version, name) values ($1::int, $2::text)`, [
        step.version,
        step.name,
      ]);
    }
    const { command } = await connection.query("commit");
    if (command !== "COMMIT")
      throw new InboxError("commit-refused", `The migration of schema ${schema} was rolled back.`);
    return { from, to: currentVersion, applied: pending.map((step) => step.name) };
  } catch (error) {
    connection.discard();
    throw error;
  } finally {
    connection.release();
  }
}

/** `migrateSchema` over your own pool: a `pg` Pool or a `postgres` client. */
export const migrate = (pool: unknown, options: MigrateOptions = {}): Promise<MigrateResult> =>
  migrateSchema(driverFor(pool), options);

/** The whole schema as one SQL script, for people with a migration tool of their own. */
export function printMigrations(options: Pick<MigrateOptions, "schema"> = {}): string {
  const schema = quoteSchema(options.schema ?? "inbox");
  const steps = migrations.map(
    (step) =>
      `-- ${String(step.version).padStart(4, "0")} ${step.name}${step.sql(schema)}` +
      `insert into ${schema}.migration (version, name) values (${step.version}, '${step.name}');\n`,
  );
  return `begin;\ncreate schema if not exists ${schema};\n${createMigrationTable(schema)};\n\n${steps.join("\n")}commit;\n`;
}

/** Throws `schema-missing`, `schema-outdated` or `schema-newer` unless the schema is at this release's version. */
export async function checkSchema(connection: DriverConnection, name: string): Promise<void> {
  const schema = quoteSchema(name);
  const { rows } = await connection.query<{ there: boolean }>(
    "select to_regclass($1::text) is not null as there",
    [`${schema}.migration`],
  );
  if (rows[0]?.there !== true) {
    throw new InboxError(
      "schema-missing",
      `Schema ${schema} holds no inbox. Run: inbox migrate${schemaFlag(name)}`,
    );
  }
  const version = await readVersion(connection, schema);
  if (version < currentVersion) {
    throw new InboxError(
      "schema-outdated",
      `Schema ${schema} is at version ${version}, this release needs ${currentVersion}. Run: inbox migrate${schemaFlag(name)}`,
    );
  }
  if (version > currentVersion) throw newerSchema(name, version);
}

const createMigrationTable = (schema: string): string =>
  `create table if not exists ${schema}.migration (
  version     integer primary key,
  name        text not null,
  applied_at  timestamptz not null default clock_timestamp()
)`;

async function readVersion(connection: DriverConnection, schema: string): Promise<number> {
  const { rows } = await connection.query<{ version: number | string }>(
    `select coalesce(max(version), 0)::int as version from ${schema}.migration`,
  );
  return Number(rows[0]?.version ?? 0);
}

const newerSchema = (name: string, version: number): InboxError =>
  new InboxError(
    "schema-newer",
    `Schema ${quoteSchema(name)} is at version ${version}, this release knows ${currentVersion}. Update transactional-inbox.`,
  );

const schemaFlag = (name: string): string => (name === "inbox" ? "" : ` --schema ${JSON.stringify(name)}`);

import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Pool, PoolConfig } from "pg";
import { InboxError } from "../errors.ts";
import { startLocalPostgres } from "../local-postgres/local-postgres.ts";
import type { Io } from "./io.ts";
import { UsageError } from "./usage-error.ts";

/** A connection to the database that the environment names. */
export interface Database {
  readonly pool: Pool;
  /** For people, without secrets: `localhost:5432/shop`. */
  readonly description: string;
  /** Ends the pool and leaves the local server, if that is what it is. Twice is harmless. */
  close(): Promise<void>;
}

export interface OpenOptions {
  /** What to do without DATABASE_URL and PG variables: start a local server, or use one that was started before. */
  readonly local: "start" | "existing";
  readonly maxConnections: number;
}

/** Where `inbox run` keeps its own PostgreSQL, below the working directory. */
export const localDirectory = join(".inbox", "postgres");

const libpqVariables = ["PGHOST", "PGHOSTADDR", "PGPORT", "PGUSER", "PGDATABASE", "PGSERVICE"];

/**
 * Connects by DATABASE_URL, or by libpq's variables, or to the PostgreSQL that npm ships under `.inbox/postgres`.
 * Throws `missing-package` with the install command where `pg` is not installed.
 */
export async function openDatabase(io: Io, options: OpenOptions): Promise<Database> {
  const pg = await importPg();
  const common: PoolConfig = { max: options.maxConnections, pipeline: true, application_name: "inbox" };
  const open = (config: PoolConfig, afterwards: () => Promise<void>, where?: string): Database => {
    const pool = new pg.Pool({ ...common, ...config });
    // An idle connection that the server closes is the pool's to replace; without a listener it ends the process.
    pool.on("error", () => undefined);
    let closing: Promise<void> | undefined;
    const close = (): Promise<void> => (closing ??= pool.end().then(afterwards));
    return { pool, description: where ?? describe(config, io.env), close };
  };

  const url = io.env["DATABASE_URL"];
  if (url) return open({ connectionString: checkedUrl(url) }, async () => undefined);
  if (libpqVariables.some((name) => io.env[name])) return open({}, async () => undefined);
  if (options.local === "existing" && !existsSync(localDirectory)) {
    throw new UsageError(
      "No database is named. Set DATABASE_URL (postgres://user@host:5432/name), or PGHOST and the other variables of libpq.",
    );
  }
  io.say(`No DATABASE_URL: using the PostgreSQL that npm ships, in ${localDirectory}.`);
  keepOutOfGit();
  const server = await startLocalPostgres({ directory: localDirectory, onNotice: (text) => io.say(text) });
  return open({ connectionString: server.url }, () => server.stop(), `127.0.0.1:${server.port}/postgres`);
}

/** The directory holds data and a password. */
function keepOutOfGit(): void {
  const parent = dirname(localDirectory);
  mkdirSync(parent, { recursive: true });
  const path = join(parent, ".gitignore");
  if (!existsSync(path)) writeFileSync(path, "*\n");
}

async function importPg(): Promise<{ readonly Pool: typeof Pool }> {
  try {
    return (await import("pg")).default;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ERR_MODULE_NOT_FOUND") throw error;
    throw new InboxError("missing-package", 'The driver "pg" is not installed. Run: npm install pg', {
      cause: error,
    });
  }
}

/** The driver takes almost any text for a URL and then connects to somewhere else. */
function checkedUrl(url: string): string {
  if (/^postgres(ql)?:\/\//i.test(url) && URL.canParse(url)) return url;
  throw new UsageError("DATABASE_URL is no PostgreSQL URL. It looks like postgres://user@host:5432/name.");
}

function describe(config: PoolConfig, env: Io["env"]): string {
  if (config.connectionString !== undefined) {
    const { host, pathname } = new URL(config.connectionString);
    return `${host || env["PGHOST"] || "localhost"}${pathname}`;
  }
  return `${env["PGHOST"] ?? "localhost"}:${env["PGPORT"] ?? "5432"}/${env["PGDATABASE"] ?? env["PGUSER"] ?? ""}`;
}

import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { installDebian } from "./debian.ts";
import { pgbouncerPath } from "../support/pgbouncer.ts";
import { testBinaries } from "../support/server.ts";
import type { PostgresFacts } from "./facts.ts";
import type { Help, Kind, Open, Way } from "./way.ts";

const program = join(import.meta.dirname, "keep-postgres.ts");

// What listens on 5432 is nobody's to write to, unless DATABASE_URL says so.
export const postgres: Kind<PostgresFacts> = {
  given: () => givenBy("DATABASE_URL", "TEST_DATABASE_URL"),
  ways: [keeper("PostgreSQL of npm", [], openPostgres)],
};

export const pgbouncer: Kind<PostgresFacts> = {
  given: () => givenBy("PGBOUNCER_URL"),
  ways: [
    keeper("pgbouncer", ["--pgbouncer"], async (help) => {
      if (pgbouncerPath() === undefined) return installDebian("pgbouncer", help);
      return process.env["DATABASE_URL"] ? undefined : openPostgres();
    }),
  ],
};

async function openPostgres(): Promise<Open> {
  try {
    testBinaries();
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** A process that keeps the server, which the tests start and join by themselves, from ending with them. */
function keeper(
  name: string,
  args: readonly string[],
  open: (help: Help) => Promise<Open>,
): Way<PostgresFacts> {
  return {
    name,
    ports: [],
    open,
    plan({ directory }) {
      const path = join(directory, "url");
      const { DATABASE_URL, TEST_POSTGRES } = process.env;
      return {
        gentle: true,
        get facts() {
          return { url: existsSync(path) ? readFileSync(path, "utf8") : "" };
        },
        commands: [
          {
            name: "keeper",
            program: process.execPath,
            args: ["--import", import.meta.resolve("tsx"), program, ...args],
            env: { DATABASE_URL, TEST_POSTGRES },
          },
        ],
        async beforeStart() {
          rmSync(path, { force: true });
        },
        check: async () => speaksPostgres(readFileSync(path, "utf8")),
      };
    },
  };
}

function givenBy(...variables: readonly string[]): PostgresFacts | undefined {
  const url = variables.map((name) => process.env[name]).find((value) => value !== undefined && value !== "");
  return url === undefined ? undefined : { url };
}

/** Whether one can log in and ask. */
export async function speaksPostgres(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 3_000 });
  client.on("error", () => undefined);
  try {
    await client.connect();
    await client.query("select 1");
  } finally {
    await client.end().catch(() => undefined);
  }
}

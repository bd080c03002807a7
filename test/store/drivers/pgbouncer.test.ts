import type { TestContext } from "node:test";
import { pgbouncerPath, startPgbouncer } from "../../support/pgbouncer.ts";
import { testUrl } from "../../support/postgres.ts";
import { requireOrSkip } from "../../support/require-or-skip.ts";
import { driverContract } from "./contract.ts";
import { pgPipelined, pgPlain, pgPrepared, postgresJsUnprepared, type Subject } from "./subject.ts";

async function throughPgbouncer(t: TestContext): Promise<string | undefined> {
  const reason = "pgbouncer is not installed (Debian: apt-get install pgbouncer)";
  if (!requireOrSkip(t, pgbouncerPath() !== undefined, reason)) return undefined;
  return startPgbouncer(t, await testUrl());
}

const behind = (subject: Subject): Subject => ({
  ...subject,
  name: `${subject.name} through PgBouncer`,
  direct: false,
});

driverContract(behind(pgPlain), throughPgbouncer);
driverContract(behind(pgPipelined), throughPgbouncer);
driverContract(behind(pgPrepared), throughPgbouncer);
driverContract(behind(postgresJsUnprepared), throughPgbouncer);

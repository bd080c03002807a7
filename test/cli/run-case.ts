import type { ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type pg from "pg";
import type { RunSummary } from "../../src/cli/run-summary.ts";
import { onTestEnd, type Scope } from "../support/cleanup.ts";
import { testDatabase } from "../support/postgres.ts";
import { runInbox, spawnInbox, type RunResult } from "./run-inbox.ts";

export interface Payment {
  readonly id: string | number;
  readonly account: string;
  readonly amount: number;
  readonly kind?: string;
}

/** The last line of stdout, read. */
export type Summary = RunSummary & {
  readonly unsettled: number;
  readonly stopped: boolean;
  readonly consumer: string;
};

/** A database, a directory and the command, for one test. */
export interface RunCase {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly pool: pg.Pool;
  /** Writes plain lines and returns the file's path. */
  readonly file: (name: string, payments: readonly Payment[]) => string;
  readonly run: (handler: string, ...args: readonly string[]) => Promise<RunResult & { summary: Summary }>;
  readonly spawn: (handler: string, ...args: readonly string[]) => ChildProcess;
  /** The sum of all balances. */
  readonly total: () => Promise<number>;
}

const plainFlags = ["--id-path", "id", "--producer", "shop", "--key-path", "account"];

export const handlerPath = (name: string): string => join(import.meta.dirname, "handlers", `${name}.ts`);

export const linesOf = (payments: readonly Payment[]): string =>
  payments.map((payment) => `${JSON.stringify(payment)}\n`).join("");

/** So many payments of 1 to 17 accounts. */
export const payments = (count: number, from = 0): Payment[] =>
  Array.from({ length: count }, (_, i) => ({
    id: `p-${from + i}`,
    account: `a-${(from + i) % 17}`,
    amount: 1,
  }));

/** `server`: the URL of a server other than the shared one. */
export async function runCase(t: Scope, server?: string): Promise<RunCase> {
  const cwd = mkdtempSync(join(tmpdir(), "inbox-run-"));
  onTestEnd(t, () => rmSync(cwd, { recursive: true, force: true }));
  const { url, schema, pool } = await testDatabase(t, { url: server });
  const env = { DATABASE_URL: url, PGOPTIONS: `-c search_path=${schema}` };
  const argsFor = (handler: string, args: readonly string[]): string[] => [
    ...["run", handlerPath(handler), "--json", "--schema", schema],
    ...plainFlags,
    ...args,
  ];
  return {
    ...{ cwd, env, pool },
    file(name, list) {
      const path = join(cwd, name);
      writeFileSync(path, linesOf(list));
      return path;
    },
    async run(handler, ...args) {
      const result = await runInbox(argsFor(handler, args), { cwd, env });
      return { ...result, summary: summaryIn(result.stdout) };
    },
    spawn: (handler, ...args) => {
      const child = spawnInbox(argsFor(handler, args), { cwd, env });
      onTestEnd(t, () => void child.kill("SIGKILL"));
      return child;
    },
    async total() {
      const { rows } = await pool.query<{ total: number }>(
        "select coalesce(sum(balance), 0)::int as total from account",
      );
      return rows[0]!.total;
    },
  };
}

export function summaryIn(stdout: string): Summary {
  const line = stdout.trim().split("\n").at(-1) ?? "";
  return (line === "" ? {} : JSON.parse(line)) as Summary;
}

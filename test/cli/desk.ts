import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestEnd, type Scope } from "../support/cleanup.ts";
import { testStore, type TestStore } from "../quarantine/support.ts";
import type { PostgresOptions } from "../../src/store/postgres/postgres.ts";
import { runHere } from "./in-process.ts";
import type { RunResult } from "./run-inbox.ts";

export interface TestDesk extends TestStore {
  /** A command over the test's own tables. */
  readonly inbox: (...args: readonly string[]) => Promise<RunResult>;
  /** The same with a person on the terminal. */
  readonly answering: (answers: readonly string[], ...args: readonly string[]) => Promise<RunResult>;
  /** Writes a file of the test's own and returns its path. */
  readonly file: (name: string, content: string | Uint8Array) => string;
  readonly env: Readonly<Record<string, string>>;
}

export async function testDesk(t: Scope, options: Omit<PostgresOptions, "schema"> = {}): Promise<TestDesk> {
  const store = await testStore(t, options);
  const directory = mkdtempSync(join(tmpdir(), "inbox-desk-"));
  onTestEnd(t, () => rmSync(directory, { recursive: true, force: true }));
  const env = { DATABASE_URL: store.url };
  const command = (args: readonly string[]): string[] => [...args, "--schema", store.schema];
  return {
    ...store,
    env,
    inbox: (...args) => runHere(command(args), { env }),
    answering: (answers, ...args) => runHere(command(args), { env, answers }),
    file(name, content) {
      const path = join(directory, name);
      writeFileSync(path, content);
      return path;
    },
  };
}

/** The JSON objects of a text, one a line. */
export const objects = (text: string): Record<string, unknown>[] =>
  text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Record<string, unknown>);

import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { migrate } from "../../src/store/postgres/migrate.ts";
import { onTestEnd, type Scope } from "./cleanup.ts";
import { testDatabase, type TestDatabase } from "./postgres.ts";

const root = resolve(import.meta.dirname, "../..");

/** The TypeScript blocks of a document, in their order. */
export const examplesOf = (document: string): readonly string[] =>
  [...readFileSync(join(root, document), "utf8").matchAll(/^```ts\n([\s\S]*?)^```/gm)].map(
    ([, text = ""]) => text,
  );

/** An account `a` with nothing on it, as the documents' examples expect. */
export async function exampleDatabase(t: Scope): Promise<TestDatabase> {
  const database = await testDatabase(t);
  await migrate(database.pool, { schema: database.schema });
  await database.pool.query("create table account (id text primary key, balance bigint not null default 0)");
  await database.pool.query("insert into account (id) values ('a')");
  return database;
}

/** An example with more behind it: in place of the wait for its end, where it has one. */
export const followedBy = (example: string, rest: string): string =>
  example.replace(/^await run\.finished;\n[\s\S]*/m, "") + rest;

/** Runs an example as a user would have it: the package's names lead to the source. */
export async function runExample(
  t: Scope,
  { schema, url }: TestDatabase,
  subPath: string,
  example: string,
  env: Readonly<Record<string, string>>,
): Promise<string> {
  const directory = join(root, ".cache", "docs", `${subPath}-${schema}`);
  mkdirSync(directory, { recursive: true });
  onTestEnd(t, () => rmSync(directory, { recursive: true, force: true }));
  const path = (name: string): string => JSON.stringify(join(root, name));
  const file = join(directory, "example.ts");
  writeFileSync(
    file,
    example
      .replaceAll('"transactional-inbox"', path("src/index.ts"))
      .replaceAll(`"transactional-inbox/${subPath}"`, path(`src/sources/${subPath}/${subPath}.ts`))
      .replaceAll("postgres(pool)", `postgres(pool, { schema: ${JSON.stringify(schema)} })`),
  );
  const databaseUrl = new URL(url);
  databaseUrl.searchParams.set("options", `-c search_path=${schema}`);
  const { stdout } = await promisify(execFile)(process.execPath, ["--import", "tsx", file], {
    cwd: root,
    timeout: 60_000,
    env: { ...process.env, ...env, DATABASE_URL: databaseUrl.href },
  });
  return stdout;
}

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import type { Channel } from "node:diagnostics_channel";
import { dirname, join, resolve } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { errorsDocument } from "../scripts/errors-doc.ts";
import { telemetry } from "../src/telemetry/channels.ts";
import { relayTelemetry } from "../src/telemetry/relay-channels.ts";
import { onTestEnd } from "./support/cleanup.ts";
import { testDatabase } from "./support/postgres.ts";

const root = resolve(import.meta.dirname, "..");
const read = (path: string): string => readFileSync(join(root, path), "utf8");

const documents = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md"].concat(
  readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".md"))
    .map((path) => join("docs", path)),
);

/** The fenced blocks of one language. */
const blocks = (path: string, language: string): string[] =>
  [...read(path).matchAll(new RegExp(`^\`\`\`${language}\n([\\s\\S]*?)^\`\`\``, "gm"))].map(
    (match) => match[1] ?? "",
  );

test("docs/errors.md is made from the catalogue: npm run docs", () => {
  assert.equal(read("docs/errors.md"), errorsDocument());
});

test("every test that docs/guarantees.md names exists in the file it names", () => {
  const flat = (text: string): string => text.replace(/\s+/g, " ");
  const text = flat(read("docs/guarantees.md"));
  let named = 0;
  for (const [, path = "", list = ""] of text.matchAll(/- (test\/\S+?\.ts): (.*?)(?= - test\/| ## |$)/g)) {
    const source = flat(read(path));
    for (const [, name = ""] of list.matchAll(/“(.*?)”/g)) {
      assert.ok(source.includes(name), `${path} has no test “${name}”`);
      named++;
    }
  }
  assert.ok(named >= 30, `${named} tests named`);
});

test("every promise of docs/guarantees.md has a test", () => {
  const sections = read("docs/guarantees.md")
    .split(/^## (?=\d+\. )/m)
    .slice(1);
  assert.equal(sections.length, 12);
  for (const section of sections) assert.match(section, /^- test\//m, section.slice(0, 40));
});

test("every link of a document leads somewhere", () => {
  for (const document of documents) {
    for (const [, target = ""] of read(document).matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)) {
      if (/^https?:/.test(target)) continue;
      assert.ok(existsSync(join(root, dirname(document), target)), `${document} links to ${target}`);
    }
  }
});

test("docs/watching.md tells of every channel there is, and of no other", () => {
  const channels = [telemetry, relayTelemetry].flatMap((group) => Object.values(group) as Channel[]);
  const named = [...read("docs/watching.md").matchAll(/^\| `(transactional-inbox:\S+)` \|/gm)];
  assert.deepEqual(named.map(([, name]) => name).sort(), channels.map(({ name }) => name).sort());
});

test("the commands that documents name are the package's scripts", () => {
  const { scripts } = JSON.parse(read("package.json")) as { scripts: Record<string, string> };
  for (const document of documents) {
    for (const [, name = ""] of read(document).matchAll(/npm run ([a-z-]+)/g)) {
      assert.ok(name in scripts, `${document} names npm run ${name}`);
    }
  }
});

test("the README's first example applies a payment once, as it says", { timeout: 60_000 }, async (t) => {
  const { url, schema, pool } = await testDatabase(t);
  const [first = ""] = blocks("README.md", "ts");
  const output = await runExample(
    t,
    "first",
    first,
    `
    await pool.query("create table account (id text primary key, balance bigint not null)");
    await pool.query("insert into account values ('a', 0)");
    const delivery = { id: "evt-1", body: JSON.stringify({ account: "a", amount: 5 }) };
    console.log(await onDelivery(delivery), await onDelivery(delivery));
    console.log((await pool.query("select balance from account")).rows[0].balance);
    await pool.end();`,
    url,
    schema,
  );
  assert.equal(output, "applied\nduplicate\nack ack\n5\n");
  const { rows } = await pool.query("select count(*)::int as n from message");
  assert.deepEqual(rows, [{ n: 1 }]);
});

test("the README's handlers of the other two forms add up", { timeout: 60_000 }, async (t) => {
  const { url, schema } = await testDatabase(t);
  const [, second = ""] = blocks("README.md", "ts");
  const output = await runExample(
    t,
    "second",
    second,
    `
    import pg from "pg";
    import { createInbox, migrate, postgres } from "transactional-inbox";
    const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, pipeline: true });
    await migrate(pool);
    await pool.query("create table account (id text primary key, balance bigint not null)");
    await pool.query("insert into account values ('a', 0), ('b', 0)");
    const messages = ["a", "b", "a", "a"].map((account, i) => ({ producer: "p", id: "m" + i, key: account, payload: JSON.stringify({ account, amount: i + 1 }) }));
    for (const [consumer, handler] of [["one", credit], ["all", creditAll]] as const) {
      await createInbox({ store: postgres(pool), consumer }).processBatch(messages, handler);
      console.log((await pool.query("select balance from account order by id")).rows.map((row) => row.balance).join(" "));
    }
    await pool.end();`,
    url,
    schema,
  );
  assert.equal(output, "8 2\n16 4\n");
});

/** Runs an example as a user would have it, with the package's name leading to the source and a schema of its own. */
async function runExample(
  t: Parameters<typeof onTestEnd>[0],
  name: string,
  example: string,
  rest: string,
  url: string,
  schema: string,
): Promise<string> {
  const directory = join(root, ".cache", "docs", `${name}-${schema}`);
  mkdirSync(directory, { recursive: true });
  onTestEnd(t, () => rmSync(directory, { recursive: true, force: true }));
  const source = `${example}\n${rest}`
    .replaceAll('"transactional-inbox"', JSON.stringify(join(root, "src/index.ts")))
    .replaceAll("migrate(pool)", `migrate(pool, { schema: ${JSON.stringify(schema)} })`)
    .replaceAll("postgres(pool)", `postgres(pool, { schema: ${JSON.stringify(schema)} })`);
  const file = join(directory, "example.ts");
  writeFileSync(file, source);
  const exampleUrl = new URL(url);
  exampleUrl.searchParams.set("options", `-c search_path=${schema}`);
  const { stdout } = await promisify(execFile)(process.execPath, ["--import", "tsx", file], {
    cwd: root,
    env: { ...process.env, DATABASE_URL: exampleUrl.href },
  });
  return stdout;
}

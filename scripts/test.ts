// Runs the tests: `npm test`, or `npm test -- FILTER... [--except WORD]` for the files whose path holds one of the words.
// The services they need are started by the first test that asks, live as long as the run, and end with it.
// Against DATABASE_URL where it is set, else against a PostgreSQL that is started for the run; TEST_POSTGRES=14 takes
// the programs of that major from .cache/postgres-14.
import { readdirSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join, relative, resolve } from "node:path";
import { run } from "node:test";
import { spec } from "node:test/reporters";
import { parseArgs } from "node:util";
import type { ServiceFacts, ServiceName } from "../test/services/facts.ts";
import { kinds } from "../test/services/kinds.ts";
import { sharedService, type Shared } from "../test/services/shared.ts";
import type { Kind } from "../test/services/way.ts";
import { startSharedServer } from "../test/support/server.ts";
import { bundleTests, type TestBundles } from "./bundle-tests.ts";

const root = resolve(import.meta.dirname, "..");
const perFileTimeoutMs = 4 * 60_000;

process.exitCode = await main(process.argv.slice(2));

async function main(argv: readonly string[]): Promise<number> {
  let parsed;
  try {
    parsed = parseArgs({
      args: [...argv],
      allowPositionals: true,
      options: { except: { type: "string", multiple: true, default: [] } },
    });
  } catch (error) {
    console.error(`${String(error)}\nUsage: npm test -- [WORD...] [--except WORD]...`);
    return 2;
  }
  const { values, positionals: filters } = parsed;
  const files = testFiles(filters).filter((file) => !values.except.some((word) => file.includes(word)));
  if (files.length === 0) {
    console.error(
      filters.length === 0 ? "There are no tests." : `No test file's path holds ${filters.join(" or ")}.`,
    );
    return 1;
  }
  const server = process.env["DATABASE_URL"] ? undefined : await startSharedServer();
  if (server !== undefined) process.env["TEST_DATABASE_URL"] = server.url;
  console.log(
    `${files.length} test files, Node ${process.versions.node}, ` +
      (server === undefined
        ? "the PostgreSQL of DATABASE_URL"
        : `PostgreSQL ${server.major} started for the run`),
  );
  const bundles = await bundleTests(files);
  // Test files are started with the flags of this process, and need no TypeScript any more.
  process.execArgv.splice(0, Infinity, "--enable-source-maps");
  // A conformance test is many processes of its own with deadlines: beside everything else it would measure the machine.
  const crowded = bundles.files.filter((file) => file.includes(join("test", "conformance")));
  const others = bundles.files.filter((file) => !crowded.includes(file));
  // Else each would end with the last of the files that happen to use it, and start again for the next.
  const held = services();
  for (const { shared } of held) shared.hold();
  try {
    const first = others.length > 0 ? await runFiles(bundles, others, availableParallelism() + 1) : 0;
    const second = crowded.length > 0 ? await runFiles(bundles, crowded, 2) : 0;
    return first || second;
  } finally {
    await endServices(held);
    await server?.stop();
    bundles.remove();
  }
}

/** The services as all test files share them; PostgreSQL is started above, or by what DATABASE_URL names. */
function services(): readonly { name: ServiceName; shared: Shared<ServiceFacts[ServiceName]> }[] {
  const names = (Object.keys(kinds) as ServiceName[]).filter((name) => name !== "postgres");
  return names.map((name) => ({
    name,
    shared: sharedService(name, kinds[name] as unknown as Kind<ServiceFacts[ServiceName]>),
  }));
}

async function endServices(held: ReturnType<typeof services>): Promise<void> {
  const used: string[] = [];
  for (const { name, shared } of held) {
    const found = await shared.look();
    if (found.kind === "there") used.push(`${name}: ${found.from}`);
    await shared.leave();
  }
  if (used.length > 0) console.log(`\nServices:\n${used.map((line) => `  ${line}`).join("\n")}`);
}

async function runFiles(
  bundles: TestBundles,
  files: readonly string[],
  concurrency: number,
): Promise<number> {
  const counts = new Map<string, number>();
  const skipped: string[] = [];
  const open: string[] = [];
  const where = (file: string | undefined): string =>
    file === undefined ? "" : `${relative(root, bundles.sourceOf(file))}: `;
  const stream = run({
    files: [...files],
    concurrency,
    timeout: perFileTimeoutMs,
  });
  stream.on("test:pass", ({ name, skip, file }) => {
    if (skip === undefined || skip === false) return;
    const reason = typeof skip === "string" && skip !== "" ? skip : "no reason given";
    skipped.push(`${where(file)}${name}: ${reason}`);
  });
  // An open test shows what is still to be built; it may fail, and says why.
  stream.on("test:fail", ({ name, todo, file }) => {
    if (todo !== undefined && todo !== false) open.push(`${where(file)}${name}: ${String(todo)}`);
  });
  stream.on("test:diagnostic", ({ message, nesting }) => {
    // The runner closes with its totals, one a line; the last ones count.
    const total = nesting === 0 ? /^(tests|pass|fail|cancelled|skipped|todo) (\d+)$/.exec(message) : null;
    if (total !== null) counts.set(total[1]!, Number(total[2]));
  });
  const report = stream.pipe(new spec());
  report.pipe(process.stdout, { end: false });
  await new Promise<void>((done, failed) => {
    report.on("end", done);
    report.on("error", failed);
  });

  const count = (name: string): number => counts.get(name) ?? 0;
  if (skipped.length > 0) console.log(`\nSkipped:\n${skipped.map((line) => `  ${line}`).join("\n")}`);
  if (open.length > 0)
    console.log(`\nOpen, for work to come:\n${open.map((line) => `  ${line}`).join("\n")}`);
  const failed = count("fail") + count("cancelled");
  console.log(`\n${count("pass")} passed, ${failed} failed, ${count("skipped")} skipped`);
  if (count("pass") === 0) console.error("No test ran.");
  return failed > 0 || count("pass") === 0 ? 1 : 0;
}

function testFiles(filters: readonly string[]): readonly string[] {
  return readdirSync(join(root, "test"), { recursive: true, encoding: "utf8" })
    .map((path) => join("test", path))
    .filter((path) => path.endsWith(".test.ts"))
    .filter(
      (path) => filters.length === 0 || filters.some((word) => path.replaceAll("\\", "/").includes(word)),
    )
    .sort()
    .map((path) => join(root, path));
}

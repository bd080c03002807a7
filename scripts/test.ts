// Runs the tests: `npm test`, or `npm test -- FILTER... [--except WORD]` for the files whose path holds one of the words.
// The services they need are started by the first test that asks, live as long as the run, and end with it.
// Against DATABASE_URL where it is set, else against a PostgreSQL that is started for the run; TEST_POSTGRES=14 takes
// the programs of that major from .cache/postgres-14.
import { readdirSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join, relative, resolve } from "node:path";
import { parseArgs } from "node:util";
import type { ServiceFacts, ServiceName } from "../test/services/facts.ts";
import { kinds } from "../test/services/kinds.ts";
import { sharedService, type Shared } from "../test/services/shared.ts";
import type { Kind } from "../test/services/way.ts";
import { startSharedServer } from "../test/support/server.ts";
import { bundleTests, type TestBundles } from "./bundle-tests.ts";
import { runFile, type FileRun } from "./run-test-file.ts";

const root = resolve(import.meta.dirname, "..");
const mostUnsteady = 3;
const killing = ["crash", "chaos", "chain", "conformance", "retention"].map((folder) => join("test", folder));

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
    const ran = [
      ...(await runFiles(bundles, others, availableParallelism() + 1)),
      // From the end of the alphabet, because those of SQS wait the longest and work the least.
      ...(await runFiles(bundles, crowded.toReversed(), 2)),
    ];
    tell(ran);
    const failed = ran.filter(({ failures }) => failures > 0);
    return failed.length === 0 || (await passAlone(bundles, failed)) ? 0 : 1;
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
  list("Services", used);
}

/**
 * Whether those that failed beside others pass one after another, with the machine to themselves; they are named as
 * unsteady then. Not asked of many, nor of those that kill: what they find once counts.
 */
async function passAlone(bundles: TestBundles, failed: readonly FileRun[]): Promise<boolean> {
  const paths = failed.map(({ path }) => path);
  const kill = paths.some((path) => killing.some((folder) => path.startsWith(folder)));
  if (failed.length > mostUnsteady || kill) return false;
  console.log(`\nAgain, alone: ${paths.join(", ")}`);
  const again = await runFiles(
    bundles,
    failed.map(({ file }) => file),
    1,
  );
  if (again.some(({ failures }) => failures > 0)) return false;
  list("Unsteady: failed beside others, passed alone", paths);
  return true;
}

/** Runs test files, so many at a time, and prints what each said when it has ended. */
async function runFiles(
  bundles: TestBundles,
  files: readonly string[],
  concurrency: number,
): Promise<readonly FileRun[]> {
  const waiting = files.values();
  const ran: FileRun[] = [];
  const lane = async (): Promise<void> => {
    for (const file of waiting) ran.push(await runFile(file, relative(root, bundles.sourceOf(file))));
  };
  await Promise.all(Array.from({ length: concurrency }, lane));
  return ran;
}

function tell(ran: readonly FileRun[]): void {
  const sum = (of: (run: FileRun) => number): number => ran.reduce((total, run) => total + of(run), 0);
  list(
    "Skipped",
    ran.flatMap(({ skipped }) => skipped),
  );
  list(
    "Open, for work to come",
    ran.flatMap(({ open }) => open),
  );
  list(
    "Failed",
    ran.flatMap(({ path, failures }) => (failures > 0 ? [path] : [])),
  );
  const [passed, failed, skipped] = [
    sum((run) => run.passes),
    sum((run) => run.failures),
    sum((run) => run.skips),
  ];
  console.log(`\n${passed} passed, ${failed} failed, ${skipped} skipped`);
}

function list(title: string, lines: readonly string[]): void {
  if (lines.length > 0) console.log(`\n${title}:\n${lines.map((line) => `  ${line}`).join("\n")}`);
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

// Runs the tests: `npm test`, or `npm test -- FILTER...` for the files whose path holds one of the words.
// Against DATABASE_URL where it is set, else against a PostgreSQL that is started for the run; TEST_POSTGRES=14 takes
// the programs of that major from .cache/postgres-14.
import { readdirSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join, relative, resolve } from "node:path";
import { run } from "node:test";
import { spec } from "node:test/reporters";
import { startSharedServer } from "../test/support/server.ts";

const root = resolve(import.meta.dirname, "..");
const perFileTimeoutMs = 4 * 60_000;

process.exitCode = await main(process.argv.slice(2));

async function main(filters: readonly string[]): Promise<number> {
  const files = testFiles(filters);
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
  // A conformance test is many processes of its own with deadlines: beside everything else it would measure the machine.
  const crowded = files.filter((file) => file.includes(join("test", "conformance")));
  const others = files.filter((file) => !crowded.includes(file));
  try {
    const first = others.length > 0 ? await runFiles(others, availableParallelism() + 1) : 0;
    const second = crowded.length > 0 ? await runFiles(crowded, 2) : 0;
    return first || second;
  } finally {
    await server?.stop();
  }
}

async function runFiles(files: readonly string[], concurrency: number): Promise<number> {
  const counts = new Map<string, number>();
  const skipped: string[] = [];
  const open: string[] = [];
  const where = (file: string | undefined): string => (file === undefined ? "" : `${relative(root, file)}: `);
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

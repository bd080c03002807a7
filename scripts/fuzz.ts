// Fuzzes every format, each in a process of its own with little memory: `npm run fuzz -- [--seconds 60] [--parallel N]`.
// More processes than cores share them: each then runs its time by the clock, on a part of a core.
import { execFile } from "node:child_process";
import { availableParallelism } from "node:os";
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { firstOf } from "../src/message/formats/first-of.ts";
import { allFormats } from "../test/message/formats/corpus.ts";

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "60" },
    parallel: { type: "string", default: String(availableParallelism()) },
  },
});
const seconds = whole("--seconds", values.seconds);
const parallel = whole("--parallel", values.parallel);
const root = resolve(import.meta.dirname, "..");
const memoryMiB = 256;
const startedAt = performance.now();

const names = [...allFormats, firstOf(...allFormats)].map((format) => format.name.slice(0, 30));
const waiting = [...names];
const failed: string[] = [];
await Promise.all(Array.from({ length: Math.min(parallel, names.length) }, worker));
const took = Math.round((performance.now() - startedAt) / 1_000);
console.log(
  `${names.length - failed.length} of ${names.length} formats passed ${seconds} s each, in ${took} s`,
);
if (failed.length > 0) process.exitCode = 1;

async function worker(): Promise<void> {
  for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) {
    const output = await fuzz(name);
    if (output === undefined) console.log(`ok      ${name}`);
    else {
      failed.push(name);
      console.log(`FAILED  ${name}\n${output}`);
    }
  }
}

/** What the process said, if it failed. */
function fuzz(name: string): Promise<string | undefined> {
  const pattern = `^${name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}:`;
  const args = [`--max-old-space-size=${memoryMiB}`, "--import", "tsx", "--test-reporter=tap"];
  const file = "test/message/formats/fuzz.test.ts";
  // A runner's own context would make the child report to that runner.
  const { NODE_TEST_CONTEXT: _context, ...env } = process.env;
  return new Promise((done) => {
    execFile(
      process.execPath,
      [...args, `--test-name-pattern=${pattern}`, file],
      // One delivery that hangs is an end, too; beside other work a process may need minutes to start.
      {
        cwd: root,
        env: { ...env, INBOX_FUZZ_MS: String(seconds * 1_000) },
        timeout: (seconds + 240) * 1_000,
      },
      (error, stdout, stderr) => {
        const ran = new RegExp(`^ok \\d+ - ${pattern.slice(1)}(?!.*# SKIP)`, "m").test(stdout);
        done(error === null && ran ? undefined : `${stdout}${stderr}${error?.message ?? "It did not run."}`);
      },
    );
  });
}

function whole(flag: string, text: string): number {
  const value = Number(text);
  if (Number.isInteger(value) && value > 0) return value;
  throw new Error(`${flag} must be a whole number above 0, not ${text}.`);
}

import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { run } from "node:test";
import { spec, type TestEvent } from "node:test/reporters";

const timeoutMs = 4 * 60_000;
const totalLine = /^(tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) ([\d.]+)$/;

/** What came of one test file. */
export interface FileRun {
  readonly file: string;
  /** Its name for people. */
  readonly path: string;
  readonly passes: number;
  /** 1 or more where anything is wrong, no test at all included. */
  readonly failures: number;
  readonly skips: number;
  /** Tests that were skipped, and why. */
  readonly skipped: readonly string[];
  /** Tests of what is still to be built, which may fail, and why. */
  readonly open: readonly string[];
}

/** Runs one test file in a process of its own and prints what it says when it has ended. */
export async function runFile(file: string, path: string): Promise<FileRun> {
  const counts = new Map<string, number>();
  const skipped: string[] = [];
  const open: string[] = [];
  const note = (where: string[], name: string, why: string | boolean | undefined): void => {
    if (why === undefined || why === false) return;
    where.push(`${path}: ${name}: ${typeof why === "string" && why !== "" ? why : "no reason given"}`);
  };
  let empty = false;
  async function* shown(): AsyncGenerator<TestEvent> {
    for await (const event of run({ files: [file], timeout: timeoutMs }) as AsyncIterable<TestEvent>) {
      if (event.type === "test:diagnostic" && event.data.nesting === 0) {
        // The runner closes with totals, one a line; they are printed once, for all files.
        const total = totalLine.exec(event.data.message);
        if (total !== null) {
          counts.set(total[1]!, Number(total[2]));
          continue;
        }
      }
      if (event.type === "test:pass") {
        note(skipped, event.data.name, event.data.skip);
        // The file itself is told as a test only where it has none.
        if (event.data.name === file) empty = true;
      }
      if (event.type === "test:fail") note(open, event.data.name, event.data.todo);
      yield event;
    }
  }
  process.stdout.write(await text(Readable.from(shown()).pipe(new spec())));
  const count = (name: string): number => counts.get(name) ?? 0;
  // A file without tests, and a run that broke off, have shown nothing.
  const nothing = empty || !counts.has("pass");
  if (nothing) console.error(`${path}: no test ran.`);
  return {
    ...{ file, path, skipped, open },
    ...{
      passes: count("pass"),
      failures: count("fail") + count("cancelled") + (nothing ? 1 : 0),
      skips: count("skipped"),
    },
  };
}

import type { Io } from "../../src/cli/io.ts";
import { runProgram } from "../../src/cli/program.ts";
import { redactFor } from "../../src/cli/redact.ts";
import type { RunResult } from "./run-inbox.ts";

export interface InProcessOptions {
  readonly env: Readonly<Record<string, string>>;
  /** What a person on the terminal answers, in order; without it there is no terminal. */
  readonly answers?: readonly string[];
}

/** Runs the command in this process: the same program over another terminal, without the time a process takes. */
export async function runHere(
  args: readonly string[],
  { env, answers }: InProcessOptions,
): Promise<RunResult> {
  const left = answers === undefined ? undefined : [...answers];
  const redact = redactFor(env);
  let stdout = "";
  let stderr = "";
  const io: Io = {
    env,
    print: (line) => void (stdout += `${line}\n`),
    printBytes: (bytes) => void (stdout += Buffer.from(bytes).toString("latin1")),
    say: (line) => void (stderr += `${redact(line)}\n`),
    write: async (text) => void (stdout += text),
    ask: async (question) => {
      if (left === undefined) return undefined;
      stderr += question;
      return left.shift();
    },
    terminal: false,
    status: () => undefined,
    redact,
  };
  const code = await runProgram(args, io);
  return { code, stdout, stderr };
}

import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";

const root = resolve(import.meta.dirname, "../..");

/** Commands that a document shows in blocks without a language, comments cut off. */
export const commandsOf = (document: string): readonly string[] =>
  [...readFileSync(join(root, document), "utf8").matchAll(/^```\n([\s\S]*?)^```/gm)]
    .flatMap(([, block = ""]) => block.split("\n"))
    .filter((line) => /^(?:[A-Z_]+=\S+ )*npm /.test(line))
    .map((line) => line.replace(/ +# .*/, ""));

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command of a document, `npm run NAME -- ARGUMENTS`, with more arguments behind it: of two, the later one counts. */
export async function runDocumented(
  command: string,
  more: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Ended> {
  const [script = "", given = ""] = command.replace(/^.*npm run /, "").split(" -- ");
  const args = [...given.split(" ").filter((word) => word !== ""), ...more];
  const child = spawn("npm", ["run", "--silent", script, "--", ...args], {
    cwd: root,
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, ...env },
  });
  let stdout = "";
  let stderr = "";
  child.stdout.on("data", (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  return { code, stdout, stderr };
}

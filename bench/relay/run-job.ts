import { spawn } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import { bundle } from "../../scripts/bundle.ts";

/** Runs a program of this folder with its job as JSON, and reads the JSON it prints. */
export async function runJob<Answer>(program: string, job: object): Promise<Answer> {
  const path = await bundle(resolve("bench", "relay", `${program}.ts`));
  const profile =
    process.env["BENCH_CPU_PROF"] === "1" ? ["--cpu-prof", "--cpu-prof-dir=.cache/profiles"] : [];
  const child = spawn(process.execPath, [...profile, path, JSON.stringify(job)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let text = "";
  child.stdout.setEncoding("utf8").on("data", (part: string) => (text += part));
  const [code] = (await once(child, "close")) as [number | null];
  if (code !== 0) throw new Error(`${program} ended with ${String(code)}.`);
  return JSON.parse(text) as Answer;
}

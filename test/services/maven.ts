import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { lock } from "../../src/local-postgres/file-lock.ts";
import { programPath } from "./processes.ts";
import type { Help } from "./way.ts";

const run = promisify(execFile);
const cache = resolve(import.meta.dirname, "../..", ".cache", "maven");
const oldestJava = 17;

/** Java programs that Maven Central has, named by a file of `maven/`. */
export interface JavaPrograms {
  /** Downloads what is missing, once, and tells why it cannot. */
  open(help: Help): Promise<string | undefined>;
  /** The `-cp` of all of them. */
  readonly classPath: string;
}

/** The programs of `maven/NAME.xml`. A complete download is used again without the network, until that file changes. */
export function javaPrograms(name: string): JavaPrograms {
  const pom = join(import.meta.dirname, "maven", `${name}.xml`);
  const hash = createHash("sha256").update(readFileSync(pom)).digest("hex").slice(0, 12);
  const directory = join(cache, `${name}-${hash}`);
  return {
    classPath: join(directory, "*"),
    async open({ install, say }) {
      const java = await javaVersion();
      if (java === undefined) return `${name} needs Java ${oldestJava} or newer, and there is no java`;
      if (java < oldestJava) return `${name} needs Java ${oldestJava} or newer, and java is ${java}`;
      if (existsSync(directory)) return undefined;
      if (programPath("mvn") === undefined)
        return `${name} is not in .cache/maven, and there is no mvn to get it`;
      if (!install) return `${name} is not in .cache/maven (npm run services -- up ${name} downloads it)`;
      mkdirSync(cache, { recursive: true });
      const unlock = await lock(join(cache, `${name}.lock`), AbortSignal.timeout(10 * 60_000));
      try {
        if (existsSync(directory)) return undefined;
        say(`Downloading ${name} with Maven.`);
        return await download(name, pom, directory);
      } finally {
        unlock();
      }
    },
  };
}

async function download(name: string, pom: string, directory: string): Promise<string | undefined> {
  // Under its name only when it is complete.
  const draft = `${directory}.part`;
  rmSync(draft, { recursive: true, force: true });
  const goal = "dependency:copy-dependencies";
  try {
    await run("mvn", ["-q", "-B", "-f", pom, goal, `-DoutputDirectory=${draft}`, "-DincludeScope=runtime"], {
      timeout: 8 * 60_000,
      maxBuffer: 16 * 1024 * 1024,
      cwd: cache,
    });
    renameSync(draft, directory);
    return undefined;
  } catch (error) {
    const { stdout = "", message = "" } = error as { stdout?: string; message?: string };
    const line = `${stdout}\n${message}`.split("\n").find((text) => text.includes("ERROR")) ?? message;
    return `Maven could not download ${name}: ${line.trim()}`;
  }
}

async function javaVersion(): Promise<number | undefined> {
  try {
    const { stderr } = await run("java", ["-version"], { timeout: 30_000 });
    return Number(/version "(?:1\.)?(\d+)/.exec(stderr)?.[1] ?? NaN);
  } catch {
    return undefined;
  }
}

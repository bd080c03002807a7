import { execFile } from "node:child_process";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { lock } from "../../src/local-postgres/file-lock.ts";
import { canInstall, installDebian } from "./debian.ts";
import { extraClientDirectory, extraClients, type ExtraClient } from "./kafka-clients.ts";
import type { Help, Open } from "./way.ts";

const run = promisify(execFile);
const headers = ["libssl-dev", "zlib1g-dev", "libzstd-dev", "libcurl4-openssl-dev", "libsasl2-dev"] as const;
const compilers = ["g++", "make", "python3"] as const;

/**
 * Installs a Kafka client below `.cache`, once, and tells why it cannot: what is built for this machine if that can be
 * downloaded, else built here, which takes some minutes.
 */
export async function installClient(name: ExtraClient, help: Help): Promise<Open> {
  const directory = extraClientDirectory(name);
  const { packageName, version } = extraClients[name];
  const done = join(directory, "installed");
  if (existsSync(done)) return undefined;
  if (!help.install) return `${packageName} is not installed (npm run services -- up kafka-${name} does it)`;
  mkdirSync(directory, { recursive: true });
  const unlock = await lock(join(directory, "lock"), AbortSignal.timeout(20 * 60_000));
  try {
    if (existsSync(done)) return undefined;
    help.say(`Installing ${packageName} below .cache; where it has to be built, this takes some minutes.`);
    if (name === "confluent") await prepareBuild(help);
    rmSync(join(directory, "node_modules"), { recursive: true, force: true });
    writeFileSync(join(directory, "package.json"), '{ "private": true }\n');
    const args = ["install", "--no-audit", "--no-fund", "--no-package-lock", `${packageName}@${version}`];
    await run("npm", args, {
      cwd: directory,
      env: { ...process.env, CKJS_LINKING: "dynamic" },
      timeout: 15 * 60_000,
      maxBuffer: 64 * 1024 * 1024,
    });
    await run(process.execPath, ["--input-type=module", "--eval", `await import("${packageName}")`], {
      cwd: directory,
      timeout: 60_000,
    });
    writeFileSync(done, `${process.versions.modules}\n`);
    return undefined;
  } catch (error) {
    const { stderr = "", message = "" } = error as { stderr?: string; message?: string };
    const line = stderr.split("\n").find((text) => /error/i.test(text)) ?? message;
    return `${packageName} could not be installed: ${line.trim()}`;
  } finally {
    unlock();
  }
}

/** The libraries and compilers of a build, where they can be installed: a downloaded build does without them. */
async function prepareBuild(help: Help): Promise<void> {
  if (!canInstall()) return;
  for (const name of [...headers, ...compilers]) {
    const { stdout } = await run("dpkg-query", ["-W", "-f=${Status}", name]).catch(() => ({ stdout: "" }));
    if (!stdout.includes("ok installed")) await installDebian(name, help);
  }
}

import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { promisify } from "node:util";
import type { Help } from "./way.ts";

const run = promisify(execFile);

/** Whether packages can be installed here: Debian or a relative of it, and root. */
export const canInstall = (): boolean => process.getuid?.() === 0 && existsSync("/usr/bin/apt-get");

/**
 * Installs a Debian package where it may and can, and tells why not else. Without the service it brings: a service of
 * the tests is started by the tests.
 */
export async function installDebian(name: string, { install, say }: Help): Promise<string | undefined> {
  if (!canInstall()) return `${name} is not installed, and only root on Debian can install it from here`;
  if (!install) return `${name} is not installed (npm run services -- up installs it)`;
  say(`Installing ${name} with apt-get.`);
  const env = { ...process.env, RUNLEVEL: "1", DEBIAN_FRONTEND: "noninteractive" };
  const install1 = (): Promise<unknown> =>
    run("apt-get", ["install", "-q", "-y", "--no-install-recommends", name], { env, timeout: 300_000 });
  try {
    // The lists may be missing or old: then once more with new ones.
    await install1().catch(async () => {
      await run("apt-get", ["update", "-q"], { env, timeout: 120_000 });
      await install1();
    });
    return undefined;
  } catch (error) {
    return `apt-get could not install ${name}: ${lastLine(error)}`;
  }
}

const lastLine = (error: unknown): string => String(error).trim().split("\n").at(-1) ?? "";

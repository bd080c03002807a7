import { randomUUID } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { processBirth, sameProcessAlive } from "../../src/local-postgres/process-alive.ts";
import { atExit } from "./at-exit.ts";
import { clearInstance, createInstance, type Instance } from "./instance.ts";
import { servicesRoot } from "./shared.ts";
import type { Help, Kind } from "./way.ts";

/**
 * A new instance for this process alone, or the reason why there is none. It dies with the process; what a killed
 * process left is ended by the next call.
 */
export async function ownInstance<Facts>(
  name: string,
  kind: Kind<Facts>,
  help: Help,
  root: string = servicesRoot,
): Promise<Instance<Facts> | string> {
  const own = join(root, "own");
  await clearOrphans(own);
  const reasons: string[] = [];
  for (const way of kind.ways) {
    const closed = await way.open(help);
    if (closed !== undefined) {
      reasons.push(closed);
      continue;
    }
    const directory = join(own, `${name}-${process.pid}-${randomUUID().slice(0, 8)}`);
    mkdirSync(directory, { recursive: true });
    writeFileSync(join(directory, "owner"), processBirth(process.pid));
    let instance: Instance<Facts>;
    try {
      instance = await createInstance(way, join(directory, "instance"));
    } catch (error) {
      rmSync(directory, { recursive: true, force: true });
      reasons.push(error instanceof Error ? error.message : String(error));
      continue;
    }
    const exit = atExit(instance.killNow);
    return {
      ...instance,
      get facts() {
        return instance.facts;
      },
      get pids() {
        return instance.pids;
      },
      async remove() {
        await instance.remove();
        exit.cancel();
        rmSync(directory, { recursive: true, force: true });
      },
    };
  }
  return `no ${name} that can be started here: ${reasons.join("; ")}`;
}

async function clearOrphans(own: string): Promise<void> {
  mkdirSync(own, { recursive: true });
  for (const name of readdirSync(own)) {
    const pid = Number(/-(\d+)-[0-9a-f]+$/.exec(name)?.[1]);
    let birth: string;
    try {
      birth = readFileSync(join(own, name, "owner"), "utf8");
    } catch {
      // Just being made, or just being removed.
      continue;
    }
    if (sameProcessAlive(pid, birth)) continue;
    await clearInstance(join(own, name, "instance"));
    rmSync(join(own, name), { recursive: true, force: true });
  }
}

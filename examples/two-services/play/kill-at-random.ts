import { setTimeout as sleep } from "node:timers/promises";
import type { Stage } from "./play.ts";

const everyMs = [100, 700] as const;
const databaseEvery = 12;

/** Kills a process chosen at random every now and then, one time in twelve a PostgreSQL, for so many seconds. */
export const killAtRandom =
  (seconds: number) =>
  async ({ fleet, world, random, signal, customers }: Stage): Promise<Readonly<Record<string, number>>> => {
    const kills: Record<string, number> = {};
    const count = (name: string): void => void (kills[name] = (kills[name] ?? 0) + 1);
    // First let it come to work: there is nothing to be lost before that.
    while (customers.placed.size === 0 && !signal.aborted) await sleep(20);
    const end = performance.now() + seconds * 1_000;
    for (let n = 1; performance.now() < end && !signal.aborted; n++) {
      await sleep(random.whole(...everyMs));
      if (n % databaseEvery === 0) {
        const name = random.pick(["orders", "ledger"] as const);
        await fleet.excuse(async () => {
          await world.databases[name].kill();
          await world.databases[name].restart();
        });
        count(`PostgreSQL of ${name}`);
        continue;
      }
      const members = fleet.members();
      if (members.length === 0) continue;
      const member = random.pick(members);
      await fleet.kill(member);
      count(member.name);
    }
    return kills;
  };

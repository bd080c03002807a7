import { setTimeout as sleep } from "node:timers/promises";
import type { Broker, BrokerCounts } from "../../examples/demo/broker.ts";
import type { Random } from "../../examples/demo/random.ts";
import type { LocalPostgres } from "../../src/local-postgres/local-postgres.ts";
import { points, type Point } from "../crash/plan.ts";
import type { Fleet } from "./fleet.ts";
import type { Messages } from "./messages.ts";

/** What was killed, and where. */
export interface Killed {
  /** Kills that were done, of the server too. */
  readonly kills: number;
  readonly serverKills: number;
  /** Where they hit; `any time`: from outside, with messages in hand. */
  readonly killedAt: Readonly<Record<string, number>>;
}

export interface KillOptions {
  readonly kills: number;
  readonly random: Random;
  readonly server: LocalPostgres;
  readonly broker: Broker;
  readonly messages: Messages;
  readonly fleet: Fleet;
  readonly onProgress: (text: string) => void;
}

/** So many consumers that end by themselves, and there is no use in going on. */
export const hopeless = 3;

const serverEvery = 10;
const aimedPoints: readonly Point[] = [...points, "quarantine"];
const patienceMs = 1_500;
const idleTimeoutMs = 30_000;

/** Kills one after another, each time somebody who is at work; fewer than asked if for long nobody is. */
export async function killMany(options: KillOptions): Promise<Killed> {
  const { kills, random, broker, messages, fleet, onProgress } = options;
  const killedAt: Record<string, number> = {};
  let done = 0;
  let serverKills = 0;
  let lastKill = performance.now();
  while (done < kills && performance.now() - lastKill < idleTimeoutMs && fleet.unexpected.length < hopeless) {
    await sleep(random.whole(10, 350));
    const ofServer = (done + 1) % serverEvery === 0;
    const where = ofServer ? await killServer(options) : await killConsumer(options);
    if (where === undefined) continue;
    killedAt[where] = (killedAt[where] ?? 0) + 1;
    if (ofServer) serverKills++;
    done++;
    lastKill = performance.now();
    if (poisonAfter(kills).includes(done)) broker.publish(messages.next("poison"));
    if (done % 10 === 0) onProgress(progress(done, kills, messages, broker.counts()));
  }
  return { kills: done, serverKills, killedAt };
}

/** Tells where it was, or nothing if nobody was killed who would not have died anyway. */
async function killConsumer({ fleet, random }: KillOptions): Promise<string | undefined> {
  const child = fleet.atWork(random.pick);
  if (child === undefined) return undefined;
  const where = await fleet.kill(
    child,
    random.chance(0.75) ? random.pick(aimedPoints) : undefined,
    patienceMs,
  );
  return where === "poison" ? undefined : where;
}

/** By a consumer at a point of its work, or from outside; and starts it again, which recovers what was committed. */
async function killServer({ fleet, random, server, broker }: KillOptions): Promise<string | undefined> {
  const child = fleet.atWork(random.pick);
  if (child === undefined || broker.counts().inHand === 0) return undefined;
  const point = random.chance(0.5) ? random.pick(points) : undefined;
  const aimed = point !== undefined && (await fleet.killServer(child, point, server.pid, patienceMs));
  if (!aimed) await server.kill();
  await server.restart();
  return `server at ${aimed ? point : "any time"}`;
}

/** Messages that kill their process. Each takes several deaths and leases to be found out, so a short run has one. */
const poisonAfter = (kills: number): readonly number[] =>
  kills < 20 ? [1] : [Math.ceil(kills / 4), Math.ceil(kills / 2)];

const progress = (done: number, kills: number, { sent }: Messages, counts: BrokerCounts): string =>
  `${done} of ${kills} kills, ${sent.size} messages, ${counts.deliveries} deliveries, ${counts.ready} waiting`;

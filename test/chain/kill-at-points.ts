import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import type { Member } from "../../examples/two-services/play/fleet.ts";
import type { OwnBroker, Stage } from "../../examples/two-services/play/play.ts";
import { pointsOf, type Arm, type Point } from "./points.ts";

export interface KillOptions {
  readonly kills: number;
  readonly onProgress: (text: string) => void;
}

const betweenMs = [10, 250] as const;
const databaseEvery = 14;
const brokerEvery = 11;
const patienceMs = 1_500;
const idleTimeoutMs = 120_000;

/** Kills one after another, three of four at a point of their work; rejects if for long no order is placed. */
export const killAtPoints =
  ({ kills, onProgress }: KillOptions) =>
  async (stage: Stage): Promise<Readonly<Record<string, number>>> => {
    const { random, customers, signal, fleet } = stage;
    const killedAt: Record<string, number> = {};
    let placed = 0;
    let progressAt = performance.now();
    for (let done = 0; done < kills && !signal.aborted;) {
      await sleep(random.whole(...betweenMs));
      if (customers.placed.size > placed) [placed, progressAt] = [customers.placed.size, performance.now()];
      else if (performance.now() - progressAt > idleTimeoutMs) {
        throw new Error(
          `No order was placed for two minutes, after ${done} kills: ${customers.lastFailure()}`,
        );
      }
      // Nothing can be lost before something is under way.
      if (placed === 0 || fleet.members().length === 0) continue;
      const where = await killOne(stage, done + 1);
      killedAt[where] = (killedAt[where] ?? 0) + 1;
      if (++done % 25 === 0)
        onProgress(`${done} of ${kills} kills, ${placed} orders; last failure: ${customers.lastFailure()}`);
    }
    return killedAt;
  };

/** Tells whom it was, and where. */
async function killOne(stage: Stage, n: number): Promise<string> {
  if (n % databaseEvery === 0) return killDatabase(stage);
  if (n % brokerEvery === 0 && stage.broker !== undefined) return killBroker(stage, stage.broker);
  return killProcess(stage);
}

/** What it has confirmed is there when it is back, and so is what nobody has acknowledged. */
async function killBroker({ fleet, world }: Stage, broker: OwnBroker): Promise<string> {
  return fleet.excuse(async () => {
    await broker.kill();
    await broker.start();
    // The broker answers before its queue does.
    await world.queue?.waiting();
    return "RabbitMQ at any time";
  });
}

async function killProcess({ fleet, random }: Stage): Promise<string> {
  const member = random.pick(fleet.members());
  const point = random.chance(0.75) ? pointFor(member, random) : undefined;
  if (point !== undefined && (await comesTo(member, { arm: point }))) return `${member.name} at ${point}`;
  await fleet.kill(member);
  return `${member.name} at any time`;
}

const usersOf = {
  orders: ["orders service", "orders relay"],
  ledger: ["ledger service", "ledger relay"],
} as const;

/** By a process at a point of its work, or from outside; and starts it again, which recovers what was committed. */
async function killDatabase({ fleet, world, random }: Stage): Promise<string> {
  const name = random.pick(["orders", "ledger"] as const);
  const server = world.databases[name];
  const users = fleet
    .members()
    .filter((member) => (usersOf[name] as readonly string[]).includes(member.name));
  const user = users.length > 0 && random.chance(0.5) ? random.pick(users) : undefined;
  return fleet.excuse(async () => {
    let where = "at any time";
    if (user !== undefined) {
      const arm = pointFor(user, random);
      const dead = gone(server.pid);
      user.child.send({ arm, victim: server.pid } satisfies Arm, () => undefined);
      if (await within(dead, patienceMs)) where = `by ${user.name} at ${arm}`;
      // Not left armed: the process id may be somebody else's later.
      else await fleet.kill(user);
    }
    await server.kill();
    await server.restart();
    return `PostgreSQL of ${name} ${where}`;
  });
}

const pointFor = ({ name }: Member, random: Stage["random"]): Point => random.pick<Point>(pointsOf[name]);

/** Arms it. False if it did not die there in time. */
async function comesTo({ child }: Member, arm: Arm): Promise<boolean> {
  const closed = once(child, "close");
  child.send(arm, () => undefined);
  return within(closed, patienceMs);
}

async function within(what: Promise<unknown>, ms: number): Promise<boolean> {
  const late = new AbortController();
  const timer = sleep(ms, false, { signal: late.signal }).catch(() => false);
  const came = await Promise.race([what.then(() => true), timer]);
  late.abort();
  return came;
}

/** Resolves when the process is gone, or after twice the patience. */
async function gone(pid: number): Promise<void> {
  const last = performance.now() + 2 * patienceMs;
  while (performance.now() < last) {
    try {
      process.kill(pid, 0);
    } catch {
      return;
    }
    await sleep(5);
  }
}

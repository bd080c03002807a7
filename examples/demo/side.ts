import { fork, type ChildProcess } from "node:child_process";
import { createBroker, type Broker, type BrokerCounts } from "./broker.ts";
import type { Payments } from "./payments.ts";
import type { Random } from "./random.ts";
import type { ToldOutcome } from "./tell-outcomes.ts";

/** One of the two worlds: a broker and three consumers, which are killed over and over. */
export interface Side {
  /** Sends everything. Resolves when all of it is acknowledged. */
  run(): Promise<void>;
  counts(): SideCounts;
  stop(): Promise<void>;
}

export interface SideCounts extends BrokerCounts {
  readonly kills: number;
  /** What consumers told of deliveries: `applied`, `duplicate`, `conflict`, … */
  readonly outcomes: Readonly<Record<string, number>>;
  /** Acknowledged a second, from the first delivery to the last acknowledgement. */
  readonly rate: number;
  /** The last words of consumers that ended by themselves. */
  readonly failures: readonly string[];
}

export interface SideOptions {
  readonly program: string;
  readonly databaseUrl: string;
  readonly payments: Payments;
  /** Chooses when to kill, in messages acknowledged between two kills, and whom. */
  readonly random: Random;
}

const consumers = 3;
/** At least and at most so many acknowledgements between two kills. */
const killEvery = [100, 400] as const;
/** So many unsettled messages a consumer holds, and loses when it is killed. */
const prefetch = 20;
/** So many messages wait at the broker at most; more are sent as they are taken. */
const backlog = 300;

export function createSide({ program, databaseUrl, payments, random }: SideOptions): Side {
  const children = new Set<ChildProcess>();
  const outcomes: Record<string, number> = {};
  const failures: string[] = [];
  const later = new Map(payments.later);
  let sent = 0;
  let kills = 0;
  let nextKill = random.whole(...killEvery);
  let startedAt = 0;
  let lastAckAt = 0;
  let stopping = false;

  const broker: Broker = createBroker({
    prefetch,
    onAck({ body }) {
      lastAckAt = performance.now();
      const copy = later.get(body);
      if (copy !== undefined) {
        later.delete(body);
        // The broker's own redelivery carries its flag; a producer that sends an id again with other data does not.
        broker.publish([copy], { redelivered: copy === body });
      }
      feed();
      if (broker.counts().acks >= nextKill) kill();
    },
  });

  function feed(): void {
    const { ready } = broker.counts();
    const next = payments.documents.slice(sent, sent + Math.max(0, backlog - ready));
    sent += next.length;
    broker.publish(next);
  }

  /** SIGKILL, while it has messages in hand: no chance to finish anything. */
  function kill(): void {
    const atWork = [...children].filter(
      (child) => child.connected && !child.killed && broker.inHand(child) > 0,
    );
    if (atWork.length === 0 || stopping) return;
    random.pick(atWork).kill("SIGKILL");
    kills++;
    nextKill = broker.counts().acks + random.whole(...killEvery);
  }

  function start(): void {
    if (stopping) return;
    const child = fork(program, {
      execArgv: [],
      env: { ...process.env, DATABASE_URL: databaseUrl },
      stdio: ["ignore", "inherit", "pipe", "ipc"],
    });
    let said = "";
    child.stderr!.on("data", (chunk: Buffer) => (said += chunk.toString()));
    child.on("message", (message: ToldOutcome | object) => {
      if ("outcome" in message) outcomes[message.outcome] = (outcomes[message.outcome] ?? 0) + 1;
    });
    child.once("close", (code, signal) => {
      children.delete(child);
      if (signal === null && !stopping) failures.push(`A consumer ended with ${code}: ${said.trim()}`);
      start();
    });
    children.add(child);
    broker.serve(child);
  }

  return {
    async run() {
      startedAt = performance.now();
      for (let i = 0; i < consumers; i++) start();
      feed();
      await broker.drained();
    },
    counts() {
      const counts = broker.counts();
      const seconds = (lastAckAt - startedAt) / 1_000;
      return {
        ...counts,
        kills,
        outcomes,
        failures,
        rate: seconds > 0 ? Math.round(counts.acks / seconds) : 0,
      };
    },
    async stop() {
      stopping = true;
      const closed = [...children].map((child) => new Promise((resolve) => child.once("close", resolve)));
      for (const child of children) child.kill("SIGKILL");
      await Promise.all(closed);
    },
  };
}

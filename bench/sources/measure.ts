import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import pg from "pg";
import { bundle } from "../../scripts/bundle.ts";
import { freshSchema, total } from "../setup.ts";
import { fill, type BrokerName } from "./fill.ts";
import type { ClientName, Job, Result, Way } from "./job.ts";
import { distinct, type Load } from "./messages.ts";

/** One way through one client, to be measured. */
export interface Contender {
  readonly client: ClientName;
  readonly way: Way;
  readonly inHand: number;
}

export interface Bench {
  readonly databaseUrl: string;
  /** The brokers' addresses, of those that are there. */
  readonly addresses: Readonly<Partial<Record<BrokerName, string>>>;
  readonly load: Load;
}

export const brokerOf: Readonly<Record<ClientName, BrokerName | undefined>> = {
  memory: undefined,
  "rabbitmq-client": "rabbitmq",
  amqplib: "rabbitmq",
  confluent: "kafka",
  kafkajs: "kafka",
};

/** Fills a queue or topic, lets one consumer process work through it, and checks what it did. */
export async function measure(bench: Bench, { client, way, inHand }: Contender): Promise<Result> {
  const { databaseUrl, addresses, load } = bench;
  const broker = brokerOf[client];
  const address = broker === undefined ? "" : addresses[broker]!;
  const filled = broker === undefined ? undefined : await fill(broker, address, load);
  const { schema, drop } = await freshSchema(databaseUrl, load.accounts);
  try {
    const job: Job = {
      ...{ way, client, load, databaseUrl, schema, address, inHand },
      place: filled?.place ?? "",
    };
    const result = await runConsumer(job);
    await check(job);
    return result;
  } finally {
    await drop();
    await filled?.remove();
  }
}

async function runConsumer(job: Job): Promise<Result> {
  const program = await bundle(join(import.meta.dirname, "consumer.ts"));
  const child = fork(program, [JSON.stringify(job)], {
    execArgv: [],
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  let result: Result | undefined;
  child.on("message", (told: Result) => (result = told));
  const [code, signal] = (await once(child, "close")) as [number | null, NodeJS.Signals | null];
  if (code !== 0 || result === undefined)
    throw new Error(`The consumer of ${job.way} ${job.client} ended with ${code ?? signal}.`);
  return result;
}

/** A rate counts only where the effects are right. */
async function check({ way, load, databaseUrl, schema }: Job): Promise<void> {
  const pool = new pg.Pool({ connectionString: databaseUrl, options: `-c search_path=${schema}`, max: 1 });
  const effects = await total(pool);
  await pool.end();
  const expected = { inbox: distinct(load), autocommit: load.deliveries, drain: 0 }[way];
  if (effects !== expected) throw new Error(`${way}: ${effects} effects, and ${expected} were to be.`);
}

import { parseArgs } from "node:util";
import { benchServer, median } from "../setup.ts";
import { openBrokers } from "./brokers.ts";
import type { ClientName, Result, Way } from "./job.ts";
import { brokerOf, measure, type Bench, type Contender } from "./measure.ts";
import type { Load } from "./messages.ts";
import { bars, printed, ratiosOf, type Measured } from "./report.ts";

// Consumers of real brokers, by turns in one run on one machine: through the inbox, and by the same client with the same
// handler and no inbox. Each works through a queue or topic that was filled before it started.

const allClients = ["rabbitmq-client", "amqplib", "confluent", "kafkajs"] as const;
/** Most messages in hand of a consumer without an inbox; its best level is what the inbox is compared with. */
const levels = [10, 100, 1_000] as const;

/** `npm run bench -- sources`: returns the exit code. */
export async function benchSources(argv: readonly string[]): Promise<number> {
  const { values: args } = parseArgs({
    args: [...argv],
    options: {
      json: { type: "boolean", default: false },
      quick: { type: "boolean", default: false },
      backlog: { type: "boolean", default: false },
      messages: { type: "string" },
      rounds: { type: "string" },
      seed: { type: "string", default: "1" },
      only: { type: "string" },
    },
  });
  const clients = (args.only?.split(",") ?? allClients) as readonly ClientName[];
  const unknown = clients.find((name) => brokerOf[name] === undefined);
  if (unknown !== undefined) throw new Error(`--only takes ${allClients.join(", ")}, not ${unknown}.`);
  const usual = args.backlog ? 1_000_000 : args.quick ? 10_000 : 100_000;
  const load: Load = {
    deliveries: Number(args.messages ?? usual),
    copies: 0.1,
    accounts: 1_000,
    seed: Number(args.seed),
  };
  const rounds = Number(args.rounds ?? (args.quick || args.backlog ? 1 : 3));

  const say = (text: string): void => void process.stderr.write(`${text}\n`);
  const server = await benchServer();
  const brokers = await openBrokers(new Set(clients), { install: true, say });
  try {
    for (const [client, reason] of brokers.missing) say(`${client} is left out: ${reason}`);
    const there = clients.filter((client) => !brokers.missing.has(client));
    const bench: Bench = { databaseUrl: server.url, addresses: brokers.addresses, load };
    const measured = await measureAll(bench, contendersOf(there, args.backlog), rounds, say);
    const report = {
      load: { ...load, rounds },
      ratios: args.backlog ? {} : ratiosOf(measured),
      bars,
      measured,
      leftOut: Object.fromEntries(brokers.missing),
    };
    process.stdout.write(args.json ? `${JSON.stringify(report)}\n` : printed(measured, args.backlog));
    return 0;
  } finally {
    await brokers.close();
    await server.stop();
  }
}

function contendersOf(clients: readonly ClientName[], backlog: boolean): readonly Contender[] {
  const inbox = (client: ClientName): Contender => ({ client, way: "inbox", inHand: 0 });
  if (backlog) return clients.map(inbox);
  const byHand = (client: ClientName, way: Way): readonly Contender[] =>
    (way === "drain" ? ([1_000] as const) : levels).map((inHand) => ({ client, way, inHand }));
  return [
    inbox("memory"),
    ...clients.flatMap((client) => [
      inbox(client),
      ...byHand(client, "autocommit"),
      ...byHand(client, "drain"),
    ]),
  ];
}

async function measureAll(
  bench: Bench,
  contenders: readonly Contender[],
  rounds: number,
  say: (text: string) => void,
): Promise<readonly Measured[]> {
  const results = new Map<Contender, Result[]>(contenders.map((contender) => [contender, []]));
  for (let round = 0; round < rounds; round++) {
    for (const contender of contenders) {
      const result = await measure(bench, contender);
      results.get(contender)!.push(result);
      const rate = Math.round((result.deliveries / result.ms) * 1_000);
      say(
        `round ${round + 1} of ${rounds}: ${contender.way} ${contender.client} ${contender.inHand || ""} ${rate}/s`,
      );
    }
  }
  return contenders.map((contender) => {
    const list = results.get(contender)!;
    return {
      ...contender,
      rate: Math.round(median(list.map(({ deliveries, ms }) => (deliveries / ms) * 1_000))),
      cpuMicros: Math.round(median(list.map(({ deliveries, cpuMs }) => (cpuMs / deliveries) * 1_000))),
      maxRssMb: Math.round(Math.max(...list.map(({ maxRssBytes }) => maxRssBytes)) / 1_000_000),
    };
  });
}

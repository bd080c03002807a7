import { parseArgs } from "node:util";
import { benchServer, median } from "../setup.ts";
import { openBrokers } from "./brokers.ts";
import type { ClientName, Result, Way } from "./job.ts";
import { measure, type Bench, type Contender } from "./measure.ts";
import type { Load } from "./messages.ts";
import { bars, printed, ratiosOf, type Measured } from "./report.ts";

// Consumers of real brokers, by turns in one run on one machine: through the inbox, and by the same client with the same
// handler and no inbox. Each works through a queue or topic that was filled before it started.

const allClients = ["rabbitmq-client", "amqplib", "confluent", "kafkajs"] as const;
/** Most messages in hand of a consumer without an inbox; its best level is what the inbox is compared with. */
const levels = [10, 100, 1_000] as const;

const usage = `Usage: npm run bench -- sources [--quick] [--backlog] [--only CLIENT,...] [--in-hand N] [--messages N] [--rounds N] [--seed N]
       [--json]

Messages of 300 bytes, a tenth of them copies, through a real broker and the inbox; the same client with the same handler
in autocommit and no inbox; the client alone; and the inbox without a broker. 100,000 messages and three rounds, with
--quick 10,000 and one. --backlog: 1,000,000 messages that wait, through the inbox only, for its memory. --in-hand: the inbox's
maxInHand, where it is not to be what a run takes by itself.
Clients: ${allClients.join(", ")}.
`;

/** `npm run bench -- sources`: returns the exit code. */
export async function benchSources(argv: readonly string[]): Promise<number> {
  const say = (text: string): void => void process.stderr.write(`${text}\n`);
  let args;
  try {
    args = argumentsOf(argv);
  } catch (error) {
    say(`${error instanceof Error ? error.message : String(error)}\n\n${usage}`);
    return 2;
  }
  if (args.help) {
    process.stdout.write(usage);
    return 0;
  }
  const { clients } = args;
  const usual = args.backlog ? 1_000_000 : args.quick ? 10_000 : 100_000;
  const load: Load = {
    deliveries: args.messages ?? usual,
    copies: 0.1,
    accounts: 1_000,
    seed: args.seed,
  };
  const rounds = args.rounds ?? (args.quick || args.backlog ? 1 : 3);

  const server = await benchServer();
  const brokers = await openBrokers(new Set(clients), { install: true, say });
  try {
    for (const [client, reason] of brokers.missing) say(`${client} is left out: ${reason}`);
    const there = clients.filter((client) => !brokers.missing.has(client));
    const bench: Bench = { databaseUrl: server.url, addresses: brokers.addresses, load };
    const measured = await measureAll(bench, contendersOf(there, args), rounds, say);
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

function argumentsOf(argv: readonly string[]) {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      json: { type: "boolean", default: false },
      quick: { type: "boolean", default: false },
      backlog: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
      messages: { type: "string" },
      "in-hand": { type: "string" },
      rounds: { type: "string" },
      seed: { type: "string" },
      only: { type: "string" },
    },
  });
  const whole = (name: "messages" | "rounds" | "seed" | "in-hand"): number | undefined => {
    const text = values[name];
    if (text === undefined || /^[1-9]\d{0,8}$/.test(text)) return text === undefined ? text : Number(text);
    throw new Error(`--${name} takes a whole number above 0, not ${text}.`);
  };
  const clients = (values.only?.split(",") ?? allClients) as readonly ClientName[];
  const unknown = clients.find((name) => !allClients.some((known) => known === name));
  if (unknown !== undefined) throw new Error(`--only takes ${allClients.join(", ")}, not ${unknown}.`);
  const { json, quick, backlog, help } = values;
  return {
    ...{ json, quick, backlog, help, clients },
    messages: whole("messages"),
    inHand: whole("in-hand"),
    rounds: whole("rounds"),
    seed: whole("seed") ?? 1,
  };
}

function contendersOf(
  clients: readonly ClientName[],
  { backlog, inHand = 0 }: { readonly backlog: boolean; readonly inHand: number | undefined },
): readonly Contender[] {
  const inbox = (client: ClientName): Contender => ({ client, way: "inbox", inHand });
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

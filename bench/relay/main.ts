import { fork } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import Table from "cli-table3";
import { bundle } from "../../scripts/bundle.ts";
import { openBrokers } from "../sources/brokers.ts";
import { benchServer, median } from "../setup.ts";
import type { Asking } from "./asking.ts";
import type { RelayJob, RelayTimes } from "./job.ts";
import { kafkaTopic } from "./kafka-topic.ts";
import { measureLatency, type LatencyTable } from "./latency.ts";
import { outboxSchema } from "./outbox-schema.ts";
import { runJob } from "./run-job.ts";

// Effects that wait, sent by one relay in a process of its own, to each kind of destination by turns.

interface RelayBenchOptions {
  readonly json: boolean;
  readonly quick: boolean;
  /** How many effects wait beside those that are sent. 0: that contender is left out. */
  readonly backlog: number;
  /** Parts of contenders' names. */
  readonly only: readonly string[] | undefined;
}

interface Contender {
  readonly name: string;
  readonly kind: RelayJob["kind"];
  readonly backlog?: boolean;
  readonly bundled?: boolean;
  readonly bar: string;
}

/** What `only` may name beside the contenders. */
const [asking, latency] = ["asking", "latency"];

const contenders: readonly Contender[] = [
  { name: "to a function that does nothing", kind: "function", bar: "" },
  { name: "to a batch that does nothing", kind: "batch", bar: "" },
  { name: "the same, full", kind: "batch", backlog: true, bar: "≥ 0.8 of it" },
  { name: "the same, asked for by handlers", kind: "batch", bundled: true, bar: "" },
  { name: "to Kafka", kind: "kafka", bar: "≥ 10,000" },
  { name: "to another inbox", kind: "inbox", bar: "≥ 5,000" },
  { name: "to HTTP on loopback", kind: "http", bar: "≥ 3,000" },
];

/** `npm run bench -- relay`, with the words behind it. */
export async function relayBench(words: readonly string[]): Promise<void> {
  const { values: args } = parseArgs({
    args: [...words],
    options: {
      quick: { type: "boolean", default: false },
      json: { type: "boolean", default: false },
      only: { type: "string" },
      backlog: { type: "string" },
    },
  });
  const backlog = Number(args.backlog ?? (args.quick ? 100_000 : 1_000_000));
  await benchRelay({ json: args.json, quick: args.quick, backlog, only: args.only?.split(",") });
}

async function benchRelay({ json, quick, backlog, only }: RelayBenchOptions): Promise<void> {
  const [rounds, effects] = quick ? [2, 20_000] : [3, 60_000];
  const wanted = contenders
    .filter((contender) => contender.backlog !== true || backlog > 0)
    .filter(({ name }) => only === undefined || only.some((part) => name.includes(part)));
  const server = await benchServer();
  const http = await httpServer();
  const say = (text: string): void => void process.stderr.write(`${text}\n`);
  const brokers = await openBrokers(
    new Set(wanted.some(({ kind }) => kind === "kafka") ? ["confluent"] : []),
    {
      ...{ install: false, say },
    },
  );
  for (const reason of brokers.missing.values()) say(`Kafka is left out: ${reason}`);
  try {
    const full = wanted.some((contender) => contender.backlog === true)
      ? await outboxSchema(server.url, backlog)
      : undefined;
    const samples = new Map<string, RelayTimes[]>(wanted.map(({ name }) => [name, []]));
    for (let round = 0; round < rounds; round++) {
      for (const { name, kind, backlog: isFull, bundled } of wanted) {
        if (kind === "kafka" && brokers.missing.size > 0) continue;
        const own = isFull === true ? undefined : await outboxSchema(server.url, effects, bundled);
        const other = kind === "inbox" ? await outboxSchema(server.url, 0) : undefined;
        const topic = kind === "kafka" ? await kafkaTopic(brokers.addresses.kafka!) : undefined;
        const target = other?.schema ?? (topic === undefined ? http.url : brokers.addresses.kafka!);
        const { schema } = (own ?? full)!;
        const job: RelayJob = { url: server.url, schema, kind, effects, target, topic: topic?.name };
        samples.get(name)?.push(await runJob<RelayTimes>("relay-job", job));
        await own?.drop();
        await other?.drop();
        await topic?.remove();
      }
    }
    await full?.drop();
    const asked =
      only === undefined || only.includes(asking)
        ? await runJob<Asking>("asking-job", {
            ...{ url: server.url, rounds: quick ? 3 : 5, ms: quick ? 900 : 2_000 },
          })
        : undefined;
    const waited =
      only === undefined || only.includes(latency) ? await measureLatency(server.url, quick) : undefined;
    report(json, effects, samples, asked, waited);
  } finally {
    http.stop();
    await brokers.close();
    await server.stop();
  }
}

function report(
  json: boolean,
  effects: number,
  samples: ReadonlyMap<string, readonly RelayTimes[]>,
  asked: Asking | undefined,
  waited: LatencyTable | undefined,
): void {
  const figures = Object.fromEntries(
    [...samples]
      .filter(([, times]) => times.length > 0)
      .map(([name, times]) => {
        const of = (part: (times: RelayTimes) => number): number => median(times.map(part));
        const micros = (ms: number): number => Math.round((ms / effects) * 10_000) / 10;
        return [
          name,
          {
            rate: Math.round((effects / of(({ ms }) => ms)) * 1_000),
            relayMicros: micros(of(({ relayMs }) => relayMs)),
            databaseMicros: micros(of(({ databaseMs }) => databaseMs)),
          },
        ];
      }),
  );
  if (json)
    return void process.stdout.write(`${JSON.stringify({ effects, figures, asked, latency: waited })}\n`);
  const table = new Table({
    head: [
      `${effects.toLocaleString("en")} effects`,
      "sent/s",
      "goal",
      "relay µs each",
      "database µs each",
      "per processor second",
    ],
    style: { head: [] },
  });
  for (const { name, bar } of contenders) {
    const figure = figures[name];
    if (figure === undefined) continue;
    const { rate, relayMicros, databaseMicros } = figure;
    const perSecond = Math.round(1_000_000 / (relayMicros + databaseMicros)).toLocaleString("en");
    table.push([name, rate.toLocaleString("en"), bar, relayMicros, databaseMicros, perSecond]);
  }
  if (samples.size > 0) process.stdout.write(`${table.toString()}\n`);
  if (asked !== undefined) reportAsking(asked);
  if (waited !== undefined) reportLatency(waited);
}

function reportAsking(asked: Asking): void {
  const cost = new Table({
    head: ["a handler that returns its statements", "messages/s", "processor µs each"],
    style: { head: [] },
  });
  for (const [name, { rate, micros }] of Object.entries(asked.rates)) {
    cost.push([name, rate.toLocaleString("en"), micros]);
  }
  cost.push(["added by effects (goal: at most 0.15)", asked.added, asked.addedProcessor]);
  process.stdout.write(`${cost.toString()}\n`);
}

function reportLatency({ idle, allLive, oneDead }: LatencyTable): void {
  const table = new Table({
    head: ["from COMMIT to the call, ms", "p50", "p99", "longest", "goal"],
    style: { head: [] },
  });
  const line = (name: string, { p50, p99, longest }: LatencyTable["idle"], goal: string): void =>
    void table.push([name, p50, p99, longest, goal]);
  line("an idle relay", idle, "≤ 50");
  line("ten destinations", allLive, "");
  line("one of them dead: the others", oneDead, "unchanged");
  process.stdout.write(`${table.toString()}\n`);
}

async function httpServer(): Promise<{ readonly url: string; stop(): void }> {
  const child = fork(await bundle(resolve("bench", "relay", "http-server.ts")), {
    stdio: ["ignore", "pipe", "inherit", "ipc"],
  });
  const [port] = (await once(child.stdout!, "data")) as [Buffer];
  return { url: `http://127.0.0.1:${port.toString().trim()}/hook`, stop: () => void child.kill() };
}

import { fork, spawn } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import Table from "cli-table3";
import { bundle } from "../../scripts/bundle.ts";
import { migrate } from "../../src/index.ts";
import { benchPool, benchServer, freshSchema, median } from "../setup.ts";
import { measureAsking, type Asking } from "./asking.ts";
import { fillOutbox } from "./fill.ts";
import type { RelayJob, RelayTimes } from "./job.ts";

// Effects that wait, sent by one relay in a process of its own, to each kind of destination by turns.

export interface RelayBenchOptions {
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
  readonly backlog: boolean;
  readonly bar: string;
}

/** What `only` may name beside the contenders. */
const asking = "asking";

const contenders: readonly Contender[] = [
  { name: "to a function that does nothing", kind: "function", backlog: false, bar: "" },
  { name: "to a batch that does nothing", kind: "batch", backlog: false, bar: "" },
  { name: "the same, full", kind: "batch", backlog: true, bar: "≥ 0.8 of it" },
  { name: "to another inbox", kind: "inbox", backlog: false, bar: "≥ 5,000" },
  { name: "to HTTP on loopback", kind: "http", backlog: false, bar: "≥ 3,000" },
];

export async function benchRelay({ json, quick, backlog, only }: RelayBenchOptions): Promise<void> {
  const [rounds, effects] = quick ? [2, 20_000] : [3, 60_000];
  const wanted = contenders
    .filter((contender) => !contender.backlog || backlog > 0)
    .filter(({ name }) => only === undefined || only.some((part) => name.includes(part)));
  const server = await benchServer();
  const http = await httpServer();
  try {
    const full = wanted.some((contender) => contender.backlog)
      ? await outboxSchema(server.url, backlog)
      : undefined;
    const samples = new Map<string, RelayTimes[]>(wanted.map(({ name }) => [name, []]));
    for (let round = 0; round < rounds; round++) {
      for (const { name, kind, backlog: isFull } of wanted) {
        const own = isFull ? undefined : await outboxSchema(server.url, effects);
        const other = kind === "inbox" ? await outboxSchema(server.url, 0) : undefined;
        const target = other?.schema ?? http.url;
        const { schema } = (own ?? full)!;
        samples.get(name)?.push(await runOnce({ url: server.url, schema, kind, effects, target }));
        await own?.drop();
        await other?.drop();
      }
    }
    await full?.drop();
    const asked =
      only === undefined || only.includes(asking)
        ? await measureAsking(server.url, quick ? 3 : 5, quick ? 900 : 2_000)
        : undefined;
    report(json, effects, samples, asked);
  } finally {
    http.stop();
    await server.stop();
  }
}

function report(
  json: boolean,
  effects: number,
  samples: ReadonlyMap<string, readonly RelayTimes[]>,
  asked: Asking | undefined,
): void {
  const figures = Object.fromEntries(
    [...samples].map(([name, times]) => {
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
  if (json) return void process.stdout.write(`${JSON.stringify({ effects, figures, asked })}\n`);
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
  if (asked === undefined) return;
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

async function outboxSchema(
  url: string,
  effects: number,
): Promise<{ schema: string; drop: () => Promise<void> }> {
  const made = await freshSchema(url, 1);
  const pool = benchPool(url, made.schema, 1, false);
  await migrate(pool, { schema: made.schema });
  await pool.end();
  await fillOutbox(url, made.schema, effects);
  return made;
}

async function runOnce(job: RelayJob): Promise<RelayTimes> {
  const path = await bundle(resolve("bench", "relay", "relay-job.ts"));
  const profile =
    process.env["BENCH_CPU_PROF"] === "1" ? ["--cpu-prof", "--cpu-prof-dir=.cache/profiles"] : [];
  const child = spawn(process.execPath, [...profile, path, JSON.stringify(job)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let text = "";
  child.stdout.setEncoding("utf8").on("data", (part: string) => (text += part));
  const [code] = (await once(child, "close")) as [number | null];
  if (code !== 0) throw new Error(`The relay ended with ${String(code)}.`);
  return JSON.parse(text) as RelayTimes;
}

async function httpServer(): Promise<{ readonly url: string; stop(): void }> {
  const child = fork(await bundle(resolve("bench", "relay", "http-server.ts")), {
    stdio: ["ignore", "pipe", "inherit", "ipc"],
  });
  const [port] = (await once(child.stdout!, "data")) as [Buffer];
  return { url: `http://127.0.0.1:${port.toString().trim()}/hook`, stop: () => void child.kill() };
}

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import Table from "cli-table3";
import { bundle } from "../scripts/bundle.ts";
import { migrate } from "../src/index.ts";
import { admin, benchPool, benchServer, freshSchema, median } from "./setup.ts";
import { fillPending } from "./store-first-fill.ts";
import { accounts, effectTable, type StoreFirstJob, type StoreFirstTimes } from "./store-first-job.ts";

// Messages stored, then handled, each with one row as its effect: this inbox against pg-boss, and an empty pending
// against a full one. Each contender is a process of its own, by turns, all on the same version of Node.

interface Contender {
  readonly name: string;
  readonly program: "store-first-inbox" | "store-first-pg-boss";
  readonly contender: string;
  readonly backlog: boolean;
}

const contenders: readonly Contender[] = [
  { name: "pg-boss: send, work", program: "store-first-pg-boss", contender: "send", backlog: false },
  {
    name: "pg-boss: insert of 500, work",
    program: "store-first-pg-boss",
    contender: "insert",
    backlog: false,
  },
  { name: "inbox: accept, work with tx", program: "store-first-inbox", contender: "tx", backlog: false },
  {
    name: "inbox: accept, work with statements",
    program: "store-first-inbox",
    contender: "statements",
    backlog: false,
  },
  { name: "inbox: the same with tx, full", program: "store-first-inbox", contender: "tx", backlog: true },
];

export interface StoreFirstOptions {
  readonly json: boolean;
  readonly quick: boolean;
  /** How many messages are pending already. 0: that contender is left out. */
  readonly backlog: number;
  readonly seed: number;
  /** Parts of contenders' names. */
  readonly only: readonly string[] | undefined;
}

export async function benchStoreFirst({
  json,
  quick,
  backlog,
  seed,
  only,
}: StoreFirstOptions): Promise<void> {
  const [rounds, messages] = quick ? [2, 10_000] : [3, 40_000];
  const node = await nodeFor();
  const wanted = contenders
    .filter((contender) => !contender.backlog || backlog > 0)
    .filter(({ name }) => only === undefined || only.some((part) => name.includes(part)));
  if (!existsSync(join(bossDirectory, "node_modules", "pg-boss")) && wanted.some(isBoss)) {
    throw new Error(`pg-boss is not there. Run: npm install --prefix ${bossDirectory} pg-boss@12`);
  }
  const server = await benchServer();
  const full = wanted.some((contender) => contender.backlog)
    ? await fullSchema(server.url, backlog)
    : undefined;
  try {
    const samples = new Map<string, StoreFirstTimes[]>(wanted.map(({ name }) => [name, []]));
    for (let round = 0; round < rounds; round++) {
      for (const { name, program, contender, backlog: isFull } of wanted) {
        const { schema, drop } = isFull && full ? full : await emptySchema(server.url);
        const job: StoreFirstJob = { url: server.url, schema, messages, seed: seed + round, contender };
        samples.get(name)?.push(await runOnce(node, program, job));
        if (!isFull) await drop();
      }
    }
    const rates = Object.fromEntries([...samples].map(([name, times]) => [name, ratesOf(messages, times)]));
    report({ json, rates, node: node.version, messages, backlog });
  } finally {
    await full?.drop();
    await server.stop();
  }
}

const isBoss = ({ program }: Contender): boolean => program === "store-first-pg-boss";
const bossDirectory = resolve(".cache", "pg-boss");

interface Rates {
  readonly store: number;
  readonly work: number;
  /** Stored and handled, one after the other. */
  readonly both: number;
}

const ratesOf = (messages: number, times: readonly StoreFirstTimes[]): Rates => {
  const rate = (of: (times: StoreFirstTimes) => number): number =>
    Math.round(median(times.map((one) => (messages / of(one)) * 1_000)));
  return {
    store: rate(({ storeMs }) => storeMs),
    work: rate(({ workMs }) => workMs),
    both: rate(({ storeMs, workMs }) => storeMs + workMs),
  };
};

interface Report {
  readonly json: boolean;
  readonly rates: Readonly<Record<string, Rates>>;
  readonly node: string;
  readonly messages: number;
  readonly backlog: number;
}

function report({ json, rates, node, messages, backlog }: Report): void {
  const both = (name: string): number => rates[name]?.both ?? Number.NaN;
  const ratio = (over: string, under: string): number => Math.round((both(over) / both(under)) * 100) / 100;
  const ratios = {
    txVsPgBoss: ratio("inbox: accept, work with tx", "pg-boss: send, work"),
    statementsVsPgBoss: ratio("inbox: accept, work with statements", "pg-boss: send, work"),
    txVsPgBossInsert: ratio("inbox: accept, work with tx", "pg-boss: insert of 500, work"),
    fullVsEmpty: ratio("inbox: the same with tx, full", "inbox: accept, work with tx"),
  };
  if (json) {
    return void process.stdout.write(`${JSON.stringify({ node, messages, backlog, ratios, rates })}\n`);
  }
  const table = new Table({
    head: [`${messages.toLocaleString("en")} messages, Node ${node}`, "stored/s", "worked/s", "both/s"],
    style: { head: [] },
  });
  for (const [name, { store, work, both: whole }] of Object.entries(rates)) {
    table.push([name, ...[store, work, whole].map((rate) => rate.toLocaleString("en"))]);
  }
  process.stdout.write(`${table.toString()}\n`);
  const bars = {
    txVsPgBoss: "≥ 3",
    statementsVsPgBoss: "",
    txVsPgBossInsert: "",
    fullVsEmpty: "≥ 0.8",
  } as const;
  const compared = new Table({ head: ["ratio of both", "measured", "at least"], style: { head: [] } });
  for (const [name, value] of Object.entries(ratios)) {
    if (!Number.isNaN(value)) compared.push([name, value, bars[name as keyof typeof bars]]);
  }
  process.stdout.write(`${compared.toString()}\n`);
}

async function emptySchema(url: string): Promise<{ schema: string; drop: () => Promise<void> }> {
  const { schema, drop } = await freshSchema(url, accounts);
  await admin(url, [effectTable(schema)]);
  const pool = benchPool(url, schema, 1, false);
  await migrate(pool, { schema });
  await pool.end();
  return {
    schema,
    async drop() {
      await admin(url, [`drop schema if exists ${schema}_boss cascade`]);
      await drop();
    },
  };
}

/** A schema with so many messages pending. Each round adds as many as it handles. */
async function fullSchema(
  url: string,
  backlog: number,
): Promise<{ schema: string; drop: () => Promise<void> }> {
  const made = await emptySchema(url);
  await fillPending(url, made.schema, { consumer: "accounting", messages: backlog, keys: accounts });
  return made;
}

interface Node {
  readonly version: string;
  readonly command: readonly [string, ...string[]];
}

/** pg-boss 12 asks for Node 22: on an older one all contenders run on Node 24, from the registry. */
async function nodeFor(): Promise<Node> {
  if (Number(process.versions.node.split(".")[0]) >= 22) {
    return { version: process.versions.node, command: [process.execPath] };
  }
  const lookUp = ["-y", "-p", "node@24", "node", "-p", "process.version + ' ' + process.execPath"];
  const [version = "", path = ""] = (await outputOf(["npx", ...lookUp])).trim().split(" ");
  return { version: version.slice(1), command: [path] };
}

async function runOnce({ command }: Node, program: string, job: StoreFirstJob): Promise<StoreFirstTimes> {
  const path = await bundle(resolve("bench", `${program}.ts`));
  return JSON.parse(await outputOf([...command, path, JSON.stringify(job)])) as StoreFirstTimes;
}

async function outputOf([command, ...args]: readonly [string, ...string[]]): Promise<string> {
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "inherit"] });
  let text = "";
  child.stdout.setEncoding("utf8").on("data", (part: string) => (text += part));
  const [code] = (await once(child, "close")) as [number | null];
  if (code !== 0) throw new Error(`${command} ended with ${String(code)}.`);
  return text;
}

import { parseArgs } from "node:util";
import Table from "cli-table3";
import { bytesPerMessage } from "./bytes.ts";
import { textbook, unsafe } from "./contenders/by-hand.ts";
import type { Contender, Measured } from "./contenders/contender.ts";
import { inboxContenders } from "./contenders/inbox.ts";
import { lowRate } from "./low-rate.ts";
import { benchServer, median, quantile } from "./setup.ts";

// Ratios of rates measured by turns in one run, on one machine, over one server with fsync on. Rates alone say little.

const { values: args, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    quick: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
    seed: { type: "string", default: "1" },
    only: { type: "string" },
    backlog: { type: "string" },
    identities: { type: "string" },
    days: { type: "string" },
    cycles: { type: "string" },
    duty: { type: "string" },
  },
});

interface Rate {
  readonly rate: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

const contenders: readonly Contender[] = [textbook, unsafe, ...inboxContenders];

async function rates(
  url: string,
  accounts: number,
  rounds: number,
  ms: number,
): Promise<Record<string, Rate>> {
  const wanted = contenders.filter(
    ({ name }) => args.only === undefined || args.only.split(",").includes(name),
  );
  const samples = new Map<string, Measured[]>(wanted.map(({ name }) => [name, []]));
  for (let round = 0; round < rounds; round++) {
    for (const contender of wanted) {
      progress(`${accounts} accounts, round ${round + 1} of ${rounds}: ${contender.name}`);
      const measured = await contender.run({ url, accounts, ms, seed: Number(args.seed) + round });
      samples.get(contender.name)?.push(measured);
    }
  }
  return Object.fromEntries(
    [...samples].map(([name, list]) => {
      const latencies = list.flatMap((measured) => [...measured.latencies]);
      return [
        name,
        {
          rate: median(list.map(({ messages, ms: took }) => (messages / took) * 1_000)),
          p50Ms: quantile(latencies, 0.5),
          p99Ms: quantile(latencies, 0.99),
        },
      ];
    }),
  );
}

const progress = (text: string): void => {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`);
};

const rounded = (value: number): number => Math.round(value * 100) / 100;

async function main(): Promise<void> {
  if (positionals[0] === "identity") {
    const { benchIdentity } = await import("./identity.ts");
    return benchIdentity({ json: args.json });
  }
  if (positionals[0] === "reconcile") {
    const { benchReconcile } = await import("./reconcile.ts");
    return benchReconcile({ json: args.json, messages: args.quick ? 100_000 : 1_000_000, only: args.only });
  }
  if (positionals[0] === "store-first") {
    const { benchStoreFirst } = await import("./store-first.ts");
    const backlog = Number(args.backlog ?? (args.quick ? 100_000 : 1_000_000));
    const only = args.only?.split(",");
    return benchStoreFirst({ json: args.json, quick: args.quick, backlog, seed: Number(args.seed), only });
  }
  if (positionals[0] === "retention") {
    const { benchRetention } = await import("./retention.ts");
    return benchRetention({
      json: args.json,
      identities: Number(args.identities ?? (args.quick ? 1_000_000 : 20_000_000)),
      days: Number(args.days ?? 20),
      cycles: Number(args.cycles ?? (args.quick ? 4 : 10)),
      dutyPercent: Number(args.duty ?? 10),
    });
  }
  if (positionals[0] === "quarantine") {
    const { benchQuarantine } = await import("./quarantine.ts");
    return benchQuarantine({ json: args.json, entries: args.quick ? 20_000 : 100_000 });
  }
  const server = await benchServer();
  try {
    const sizes = args.quick ? [1_000] : [1_000, 50, 100_000];
    const [rounds, ms] = args.quick ? [3, 900] : [5, 2_000];
    const byAccounts: Record<string, Record<string, Rate>> = {};
    for (const accounts of sizes) byAccounts[accounts] = await rates(server.url, accounts, rounds, ms);
    progress("one message at a time");
    const low = await lowRate(server.url, args.quick ? 600 : 3_000);
    progress("bytes a message");
    const bytes = await bytesPerMessage(server.url, args.quick ? 60_000 : 500_000);
    progress("");
    const main = byAccounts[1_000] ?? {};
    const ratio = (over: string, under: string): number =>
      rounded((main[over]?.rate ?? NaN) / (main[under]?.rate ?? NaN));
    const ratios = {
      sequentialVsTextbook: ratio("tx", "textbook"),
      sequentialVsUnsafe: ratio("tx", "unsafe"),
      statementsVsTextbook: ratio("statements", "textbook"),
      statementsVsUnsafe: ratio("statements", "unsafe"),
      setVsTextbook: ratio("set", "textbook"),
      statementsVsNoInbox: ratio("statements", "statements without claim"),
      unkeyedVsTextbook: ratio("unkeyed", "textbook"),
      duplicatesVsClaimOnly: ratio("duplicates", "claim only"),
      lowRateP50VsPlain: rounded(low.inboxP50Ms / low.plainP50Ms),
      bytesVsTextbook: rounded(bytes.inbox / bytes.textbook),
    };
    if (args.json)
      return void process.stdout.write(
        `${JSON.stringify({ ratios, rates: byAccounts, lowRate: low, bytes })}\n`,
      );
    for (const [accounts, table] of Object.entries(byAccounts)) {
      const rows = new Table({
        head: [`${accounts} accounts`, "messages/s", "p50 ms", "p99 ms"],
        style: { head: [] },
      });
      for (const [name, { rate, p50Ms, p99Ms }] of Object.entries(table)) {
        rows.push([name, Math.round(rate).toLocaleString("en"), rounded(p50Ms), rounded(p99Ms)]);
      }
      process.stdout.write(`${rows.toString()}\n`);
    }
    process.stdout.write(
      `one at a time: p50 ${rounded(low.inboxP50Ms)} ms, by hand ${rounded(low.plainP50Ms)} ms\n` +
        `bytes a message: ${Math.round(bytes.inbox)}, keyed by text ${Math.round(bytes.textbook)}\n`,
    );
    const table = new Table({ head: ["ratio", "measured", "at least / at most"], style: { head: [] } });
    for (const [name, value] of Object.entries(ratios))
      table.push([name, value, bars[name as keyof typeof bars]]);
    process.stdout.write(`${table.toString()}\n`);
  } finally {
    await server.stop();
  }
}

/** What this project asks of itself; the numbers are goals, not measurements. */
const bars = {
  sequentialVsTextbook: "≥ 6.5",
  sequentialVsUnsafe: "≥ 2.2",
  statementsVsTextbook: "≥ 12",
  statementsVsUnsafe: "≥ 4",
  setVsTextbook: "≥ 15",
  statementsVsNoInbox: "≥ 0.65",
  unkeyedVsTextbook: "≥ 2",
  duplicatesVsClaimOnly: "≥ 0.6",
  lowRateP50VsPlain: "≤ 1.2",
  bytesVsTextbook: "≤ 0.7",
} as const;

await main();

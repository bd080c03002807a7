// `npm run chaos -- --kills N --seed S [--json]`
import { parseArgs } from "node:util";
import { chaos, type ChaosMode, type ChaosReport } from "./chaos.ts";
import { faultsOf } from "./faults.ts";

const usage =
  "Usage: npm run chaos -- [--kills N] [--seed S] [--consumers N] [--mode inline|store-first] [--json]";

process.exitCode = await main();

async function main(): Promise<number> {
  const options = optionsFrom(process.argv.slice(2));
  if (options === undefined) {
    console.error(usage);
    return 2;
  }
  const { json, ...numbers } = options;
  console.error(`Seed ${numbers.seed}, ${numbers.kills} kills, ${numbers.mode}.`);
  const report = await chaos({ ...numbers, onProgress: (text) => console.error(text) });
  console.log(json ? JSON.stringify(report) : readable(report));
  const faults = faultsOf(report, numbers.kills);
  for (const fault of faults) console.error(`FAILED: ${fault}`);
  return faults.length === 0 ? 0 : 1;
}

function optionsFrom(
  args: string[],
): { kills: number; seed: number; consumers: number; mode: ChaosMode; json: boolean } | undefined {
  try {
    const { values } = parseArgs({
      args,
      options: {
        kills: { type: "string", default: "200" },
        seed: { type: "string", default: String(Date.now() % 1_000_000) },
        consumers: { type: "string", default: "4" },
        mode: { type: "string", default: "inline" },
        json: { type: "boolean", default: false },
      },
    });
    const [kills, seed, consumers] = [values.kills, values.seed, values.consumers].map(Number) as [
      number,
      number,
      number,
    ];
    const whole = [kills, seed, consumers].every((number) => Number.isSafeInteger(number) && number >= 0);
    const { mode, json } = values;
    if (mode !== "inline" && mode !== "store-first") return undefined;
    return whole && kills > 0 && consumers > 0 ? { kills, seed, consumers, mode, json } : undefined;
  } catch (error) {
    console.error((error as Error).message);
    return undefined;
  }
}

function readable(report: ChaosReport): string {
  const list = (counts: Readonly<Record<string, number>>): string =>
    Object.entries(counts)
      .map(([name, count]) => `${name} ${count}`)
      .join(", ") || "none";
  return [
    `mode         ${report.mode}`,
    `kills        ${report.kills}, ${report.serverKills} of them of the server, in ${(report.durationMs / 1_000).toFixed(1)} s`,
    `killed at    ${list(report.killedAt)}`,
    `by poison    ${report.poisonDeaths}`,
    `messages     ${report.messages}`,
    `deliveries   ${report.deliveries}, ${report.redeliveries} of them redeliveries`,
    `applied      ${report.applied}`,
    `quarantined  ${list(report.quarantined)}`,
    `lost         ${report.lost}`,
    `doubled      ${report.doubled}`,
  ].join("\n");
}

// `npm run demo`: what an inbox is for, in half a minute. Needs no service. Read consumer.ts first.
import { parseArgs } from "node:util";
import { demo } from "./demo.ts";
import { paintFor } from "./paint.ts";
import { money, type DemoResult } from "./result.ts";
import { resultTable } from "./table.ts";
import { createView } from "./view.ts";

const usage = "Usage: npm run demo -- [--messages N] [--seed S] [--json]";

process.exitCode = await main(process.argv.slice(2));

async function main(args: string[]): Promise<number> {
  const options = optionsFrom(args);
  if (options === undefined) {
    console.error(usage);
    return 2;
  }
  // Progress goes to stderr, so that stdout holds the result only.
  const view = createView(process.stderr, process.env, paintFor(process.stderr, process.env));
  const interrupt = new AbortController();
  // The first Ctrl-C ends tidily, the second at once.
  process.on("SIGINT", () => {
    if (interrupt.signal.aborted) process.exit(130);
    interrupt.abort(new Error("Interrupted."));
  });
  let result: DemoResult;
  try {
    result = await demo({
      ...options,
      signal: interrupt.signal,
      onStep: (text) => console.error(`${text} …`),
      onStanding: (sides) => view.show(sides),
    });
  } catch (error) {
    view.close();
    console.error(`The demo failed: ${(error as Error).message}`);
    return interrupt.signal.aborted ? 130 : 1;
  }
  view.close();
  if (options.json) console.log(JSON.stringify(result));
  else console.log(`${resultTable(result, paintFor(process.stdout, process.env))}\n${summary(result)}`);
  for (const fault of result.faults) console.error(`FAILED: ${fault}`);
  return result.faults.length === 0 ? 0 : 1;
}

function optionsFrom(args: string[]): { messages: number; seed: number; json: boolean } | undefined {
  try {
    const { values } = parseArgs({
      args,
      options: {
        messages: { type: "string", default: "10000" },
        seed: { type: "string", default: "1" },
        json: { type: "boolean", default: false },
      },
    });
    const [messages, seed] = [Number(values.messages), Number(values.seed)];
    const fit =
      Number.isSafeInteger(messages) && messages >= 1 && messages <= 1_000_000 && Number.isSafeInteger(seed);
    if (fit) return { messages, seed, json: values.json };
    console.error("--messages is a whole number from 1 to 1,000,000, --seed a whole number.");
  } catch (error) {
    console.error((error as Error).message);
  }
  return undefined;
}

function summary({ withInbox, withoutInbox, copiesCents, durationMs, seed }: DemoResult): string {
  const exact = withInbox.differenceCents === 0 && withInbox.wrongAccounts === 0;
  const byKills = withoutInbox.differenceCents - copiesCents;
  return [
    exact
      ? `With the inbox every account is exact, after ${withInbox.kills} killed processes.`
      : `With the inbox the books are WRONG by ${money(withInbox.differenceCents, true)}.`,
    `Without it they are off by ${money(withoutInbox.differenceCents, true)}: ${money(copiesCents)} from copies of messages, ` +
      `${money(byKills)} from processes killed between commit and acknowledgement.`,
    `${(durationMs / 1_000).toFixed(1)} s, seed ${seed}. The consumer is examples/demo/consumer.ts.`,
  ].join("\n");
}

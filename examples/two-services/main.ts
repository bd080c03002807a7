// `npm run example`: two services, their databases killed and their processes, too. Read orders/service.ts first.
import { join } from "node:path";
import { parseArgs } from "node:util";
import { seededRandom } from "../demo/random.ts";
import { findBroker } from "./play/find-broker.ts";
import { killAtRandom } from "./play/kill-at-random.ts";
import { play } from "./play/play.ts";
import { printFaults, resultText } from "./play/result.ts";

const usage =
  "Usage: npm run example -- [--seconds N] [--seed S] [--broker rabbitmq|none] [--json]\n" +
  "Two services, orders and ledger, and somebody else's for receipts; each is killed at random for so many seconds.";

process.exitCode = await main(process.argv.slice(2));

interface Options {
  readonly seconds: number;
  readonly seed: number;
  readonly broker: "rabbitmq" | "none";
  readonly json: boolean;
}

async function main(args: string[]): Promise<number> {
  const options = optionsFrom(args);
  if (options === undefined) {
    console.error(usage);
    return 2;
  }
  const { seconds, seed, broker, json } = options;
  const interrupt = new AbortController();
  // The first Ctrl-C ends tidily, the second at once.
  process.on("SIGINT", () => {
    if (interrupt.signal.aborted) process.exit(130);
    interrupt.abort(new Error("Interrupted."));
  });
  try {
    const result = await play({
      amqpUrl: broker === "none" ? undefined : await findBroker(process.env),
      random: seededRandom(seed),
      signal: interrupt.signal,
      preload: join(import.meta.dirname, "play", "with-parent.ts"),
      // Progress goes to stderr, so that stdout holds the result only.
      onStep: (text) => console.error(`${text} …`),
      killing: killAtRandom(seconds),
    });
    console.log(json ? JSON.stringify(result) : resultText(result));
    printFaults(result.violations);
    return result.violations.length === 0 ? 0 : 1;
  } catch (error) {
    console.error(`The example failed: ${(error as Error).message}`);
    return interrupt.signal.aborted ? 130 : 1;
  }
}

function optionsFrom(args: string[]): Options | undefined {
  try {
    const { values } = parseArgs({
      args,
      options: {
        seconds: { type: "string", default: "60" },
        seed: { type: "string", default: "1" },
        broker: { type: "string", default: "rabbitmq" },
        json: { type: "boolean", default: false },
      },
    });
    const { broker, json } = values;
    const [seconds, seed] = [Number(values.seconds), Number(values.seed)];
    const fit = seconds > 0 && seconds <= 86_400 && Number.isSafeInteger(seed);
    if (fit && (broker === "rabbitmq" || broker === "none")) return { seconds, seed, broker, json };
    console.error("--seconds is a number above 0, --seed a whole number, --broker rabbitmq or none.");
  } catch (error) {
    console.error((error as Error).message);
  }
  return undefined;
}

// `npm run chain -- --kills N --seed S [--broker rabbitmq|none] [--json]`
import { join } from "node:path";
import { parseArgs } from "node:util";
import { seededRandom } from "../../examples/demo/random.ts";
import { findBroker } from "../../examples/two-services/play/find-broker.ts";
import { play } from "../../examples/two-services/play/play.ts";
import { printFaults, resultText } from "../../examples/two-services/play/result.ts";
import { kinds } from "../services/kinds.ts";
import { ownInstance } from "../services/own.ts";
import { killAtPoints } from "./kill-at-points.ts";

const usage = "Usage: npm run chain -- [--kills N] [--seed S] [--broker rabbitmq|none] [--json]";

process.exitCode = await main(process.argv.slice(2));

interface Options {
  readonly kills: number;
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
  const { kills, seed, broker, json } = options;
  console.error(`Seed ${seed}, ${kills} kills, broker ${broker}.`);
  const interrupt = new AbortController();
  process.once("SIGINT", () => interrupt.abort(new Error("Interrupted.")));
  let own: Awaited<ReturnType<typeof ownBroker>>;
  try {
    own = broker === "none" ? undefined : await ownBroker();
    const result = await play({
      amqpUrl: broker === "none" ? undefined : (own?.facts.url ?? (await findBroker(process.env))),
      broker: own,
      random: seededRandom(seed),
      signal: interrupt.signal,
      preload: join(import.meta.dirname, "deadly.ts"),
      onStep: (text) => console.error(text),
      killing: killAtPoints({ kills, onProgress: (text) => console.error(text) }),
    });
    console.log(json ? JSON.stringify(result) : resultText(result));
    printFaults(result.violations);
    return result.violations.length === 0 ? 0 : 1;
  } catch (error) {
    console.error(`The chain could not be played: ${(error as Error).message}`);
    return 1;
  } finally {
    await own?.remove();
  }
}

/** A RabbitMQ of this play alone, which is killed like all else; none where AMQP_URL names one, or none can be started. */
async function ownBroker() {
  if (process.env["AMQP_URL"]) return undefined;
  const help = { install: false, say: (text: string) => console.error(text) };
  const made = await ownInstance("rabbitmq", kinds.rabbitmq, help);
  if (typeof made !== "string") return made;
  console.error(`The broker is not killed: ${made}`);
  return undefined;
}

function optionsFrom(args: string[]): Options | undefined {
  try {
    const { values } = parseArgs({
      args,
      options: {
        kills: { type: "string", default: "100" },
        seed: { type: "string", default: String(Date.now() % 1_000_000) },
        broker: { type: "string", default: "rabbitmq" },
        json: { type: "boolean", default: false },
      },
    });
    const { broker, json } = values;
    const [kills, seed] = [Number(values.kills), Number(values.seed)];
    const fit = Number.isSafeInteger(kills) && kills > 0 && Number.isSafeInteger(seed);
    if (fit && (broker === "rabbitmq" || broker === "none")) return { kills, seed, broker, json };
  } catch (error) {
    console.error((error as Error).message);
  }
  return undefined;
}

import { setTimeout as sleep } from "node:timers/promises";
import type { Random } from "../../demo/random.ts";
import { isDrained, readBooks } from "./books.ts";
import { compare } from "./compare.ts";
import { startCustomers, type Customers } from "./customers.ts";
import { startFleet, type Fleet } from "./fleet.ts";
import { figuresOf, type PlayResult } from "./result.ts";
import { openWorld, type World } from "./world.ts";

/** What is going on, for whoever kills. */
export interface Stage {
  readonly world: World;
  readonly fleet: Fleet;
  readonly customers: Customers;
  /** Where the broker is the play's own. */
  readonly broker: OwnBroker | undefined;
  readonly random: Random;
  /** Aborted when the play is to end early. */
  readonly signal: AbortSignal;
}

/** A broker that may be killed: nobody else uses it. */
export interface OwnBroker {
  kill(): Promise<void>;
  /** Starts it again, with what it had stored. */
  start(): Promise<void>;
}

export interface PlayOptions {
  /** Not given: without a broker, from database to database. */
  readonly amqpUrl: string | undefined;
  /** Who kills may kill this, too. */
  readonly broker?: OwnBroker | undefined;
  readonly random: Random;
  readonly signal: AbortSignal;
  /** Loaded before each program. */
  readonly preload: string;
  readonly onStep: (text: string) => void;
  /** Kills whom it likes, as long as it likes; resolves with how often, by whom it was. */
  readonly killing: (stage: Stage) => Promise<Readonly<Record<string, number>>>;
}

const customerCount = 12;
const drainTimeoutMs = 120_000;
const stopTimeoutMs = 20_000;
const lookEveryMs = 50;

/** Customers order, `killing` kills, all that is under way arrives, and the books are compared. */
export async function play(options: PlayOptions): Promise<PlayResult> {
  const { amqpUrl, broker, random, preload, onStep, killing } = options;
  const hopeless = new AbortController();
  const signal = AbortSignal.any([options.signal, hopeless.signal]);
  onStep("Starting two databases");
  const world = await openWorld(amqpUrl);
  let fleet: Fleet | undefined;
  try {
    fleet = await startFleet({
      env: world.env,
      preload,
      onHopeless: (error) => hopeless.abort(error),
    });
    const begun = performance.now();
    const customers = startCustomers({
      address: world.ordersAddress,
      customers: customerCount,
      random,
      signal,
    });
    onStep(`${customerCount} customers place orders; processes are killed`);
    const kills = await killing({ world, fleet, customers, broker, random, signal });
    onStep("No more kills; waiting until all is sent and entered");
    await customers.stop();
    const late = performance.now() + drainTimeoutMs;
    // Its own deadline, so that what is stuck is a violation in the books and no error.
    while (!signal.aborted && performance.now() < late && !(await isDrained(world))) await sleep(lookEveryMs);
    signal.throwIfAborted();
    const durationMs = Math.round(performance.now() - begun);
    const unwilling = await fleet.stop(stopTimeoutMs);
    const books = await readBooks(world);
    return {
      ...figuresOf(books, kills, customers.failed(), fleet.ended.excused.length),
      durationMs,
      violations: [
        ...compare(customers.placed, books),
        ...fleet.ended.unexpected,
        ...unwilling.map((name) => `${name} did not end in good order`),
      ],
    };
  } finally {
    await fleet?.close();
    await world.close();
  }
}

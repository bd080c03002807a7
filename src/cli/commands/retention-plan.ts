import { Command, InvalidArgumentError } from "commander";
import { parseDuration } from "../../retention/duration.ts";
import type { DeclaredFacts } from "../../retention/facts.ts";
import { measureLedger, type Measured } from "../../retention/measure.ts";
import { retentionPlan } from "../../retention/plan.ts";
import { windowFaults } from "../../retention/check-window.ts";
import { openDatabase } from "../database.ts";
import { exitCodes } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { notesOf } from "../notes.ts";
import { jsonOption, schemaOption } from "../options.ts";
import type { Action } from "../program.ts";
import { askBrokers, type BrokerOptions } from "../retention-brokers.ts";
import { printPlan } from "../retention-output.ts";
import { UsageError } from "../usage-error.ts";

interface Options extends BrokerOptions {
  readonly longestOutage?: number;
  readonly maxRewind?: number;
  readonly maxRedrive?: number;
  readonly producerRetry?: number;
  readonly outboxReplay?: number;
  readonly partnerRetry?: number;
  readonly restore?: number;
  readonly producerRestore?: number;
  readonly plannedReplay?: number;
  readonly requestTolerance?: number;
  readonly margin?: number;
  readonly window?: number;
  readonly measure: boolean;
  readonly schema: string;
  readonly json?: true;
}

const notes = `
What a broker keeps is asked of the broker: SQS as the AWS SDK finds it (AWS_REGION, credentials,
AWS_ENDPOINT_URL_SQS), NATS_URL, RABBITMQ_MANAGEMENT_URL (http://user:password@host:15672), KAFKA_BROKERS (host:port,
with kafkajs). The rest only you know: give what can happen, 0s for what cannot. What is left out is listed and decides
nothing. Durations are like 90s, 36h, 7d or 1d12h.

Examples:
  $ inbox retention plan --sqs https://sqs.eu-west-1.amazonaws.com/1/orders --longest-outage 2d --partner-retry 0s
  $ inbox retention plan --kafka payments --longest-outage 2d --producer-retry 1d --restore 7d --window 14d
  $ inbox retention plan --no-measure --partner-retry 30d --json

Exit codes: 0 fine, 1 failed, 2 wrong usage, 3 the window is for ever, or longer than --window.`;

/** `inbox retention plan`: how long identities must be kept, which scenario decides, and what that costs. */
export function retentionPlanCommand(io: Io, ended: Action): Command {
  const command = new Command("plan").description(
    "derive how long identities must be kept from what can go wrong, and what that costs",
  );
  command
    .option("--sqs <queue-url>", "a queue that is read; may be given again", again, [])
    .option("--jetstream <stream>", "a stream that is read, or stream/consumer", again, [])
    .option("--rabbitmq <queue>", "a queue that is read", again, [])
    .option("--rabbitmq-vhost <name>", "its virtual host", "/")
    .option("--kafka <topic>", "a topic that is read", again, [])
    .option("--broker-retention <duration>", "of a broker that cannot be asked, which is a queue", durationOf)
    .option("--log-retention <duration>", "of a broker that cannot be asked, which is a log", durationOf)
    .option("--longest-outage <duration>", "the longest time the consumer may be down", durationOf)
    .option("--max-rewind <duration>", "how far back a consumer of a log will ever be set", durationOf)
    .option("--max-redrive <duration>", "how long dead letters may lie before they are redriven", durationOf)
    .option("--producer-retry <duration>", "how long a producer repeats a send", durationOf)
    .option("--outbox-replay <duration>", "how far back an outbox may be sent again", durationOf)
    .option("--partner-retry <duration>", "how long partners send again", durationOf)
    .option("--restore <duration>", "the oldest backup the database may be restored from", durationOf)
    .option("--producer-restore <duration>", "the same for the producer's database", durationOf)
    .option("--planned-replay <duration>", "how far back replays are planned", durationOf)
    .option("--request-tolerance <duration>", "how old a signed request may be", durationOf)
    .option("--margin <duration>", "added to what decides (default: 1d)", durationOf)
    .option("--window <duration>", "the window in use, to be checked", durationOf)
    .option("--no-measure", "do not measure the ledger; needs no database")
    .addOption(schemaOption())
    .addOption(jsonOption())
    .addHelpText("after", notesOf(notes));
  return command.action(async (options: Options) => {
    const brokers = await askBrokers(io, options);
    const declared = declaredIn(options);
    if (brokers.length === 0 && Object.values(declared).every((value) => value === undefined)) {
      throw new UsageError(
        "Say what is read (--sqs, --kafka, ...) or what can happen (--partner-retry 30d, ...).",
      );
    }
    const measured = options.measure ? await measure(io, options.schema) : undefined;
    const plan = retentionPlan({ brokers, declared, measured, marginMs: options.margin });
    const faults = options.window === undefined ? [] : windowFaults(plan, options.window);
    printPlan(io, options.json === true, { plan, measured, window: options.window, faults });
    if (options.measure && measured === undefined) {
      io.say(
        "The ledger holds too little to measure: fewer than 1,000 identities, or less than an hour of them.",
      );
    }
    const endless = options.window === undefined && !Number.isFinite(plan.windowMs);
    ended(endless || faults.length > 0 ? exitCodes.foundSomething : exitCodes.fine);
  });
}

async function measure(io: Io, schema: string): Promise<Measured | undefined> {
  const database = await openDatabase(io, { local: "existing", maxConnections: 1 });
  try {
    return await measureLedger(database.pool, { schema });
  } finally {
    await database.close();
  }
}

const declaredIn = (options: Options): DeclaredFacts => ({
  longestOutageMs: options.longestOutage,
  maxRewindMs: options.maxRewind,
  maxRedriveMs: options.maxRedrive,
  producerRetryMs: options.producerRetry,
  outboxReplayMs: options.outboxReplay,
  partnerRetryMs: options.partnerRetry,
  restoreMs: options.restore,
  producerRestoreMs: options.producerRestore,
  plannedReplayMs: options.plannedReplay,
  requestToleranceMs: options.requestTolerance,
});

const again = (value: string, before: readonly string[]): readonly string[] => [...before, value];

function durationOf(text: string): number {
  const ms = parseDuration(text);
  if (ms === undefined)
    throw new InvalidArgumentError("It must be a duration, such as 90s, 36h, 7d or 1d12h.");
  return ms;
}

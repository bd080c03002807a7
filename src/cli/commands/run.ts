import { Command } from "commander";
import { createInbox } from "../../inbox/create-inbox.ts";
import type { RunStats } from "../../inbox/run.ts";
import type { IdTime } from "../../message/id-time.ts";
import { printable } from "../../message/show-value.ts";
import { driverFor } from "../../store/postgres/drivers/detect.ts";
import { migrateSchema } from "../../store/postgres/migrate.ts";
import { postgres } from "../../store/postgres/postgres.ts";
import type { Store } from "../../store/store.ts";
import { loadConfig } from "../config.ts";
import { openDatabase, type Database } from "../database.ts";
import { exitCodes, type ExitCode } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { idTimeFrom } from "../id-time-option.ts";
import { formatNameOption, idHeaderOption, idRuleOption } from "../identity-options.ts";
import { loadHandler, type LoadedHandler } from "../load-handler.ts";
import { notesOf } from "../notes.ts";
import { jsonOption, schemaOption, wholeNumber } from "../options.ts";
import type { Action } from "../program.ts";
import { planSource, type RunSource, type RunSourceOptions, type RunSourcePlan } from "../run-source.ts";
import { exitCodeOf, quarantined, summaryLine, summaryOf } from "../run-summary.ts";
import { startRunTalk } from "../run-talk.ts";
import { onStopSignals } from "../stop-signals.ts";
import { UsageError } from "../usage-error.ts";
import { configOption } from "../with-store.ts";

interface Options extends RunSourceOptions {
  readonly consumer?: string;
  readonly handlerVersion?: string;
  readonly lanes?: number;
  readonly maxBatch?: number;
  readonly idTime?: IdTime;
  readonly schema: string;
  readonly config?: string;
  readonly migrate: boolean;
  readonly resume: boolean;
  readonly json?: true;
}

const defaultLanes = 4;

const notes = `
The handler's module has the handler as its default export. It may also export "options" (what createInbox takes:
consumer, handlerVersion, payloadSchema, ...) and "prepare", a function that is given the database once before the first
message, to create the handler's own tables.

A file is worked through once: the position is kept in the database, and the next run goes on there. Of a directory,
and of edifact, x12 and as4, each file is one document; those that are done are known by name and content.

Examples:
  $ inbox run handler.ts --source events.ndjson                                structured CloudEvents, one a line
  $ inbox run handler.ts --source orders.ndjson --id-path order.id --producer shop
  $ inbox run handler.ts --source queue.ndjson --identity sqs --id-path /eventId
  $ inbox run handler.ts --source orders.edi --identity edifact                every interchange of a file
  $ inbox run handler.ts --source inbound/ --identity as4                      every file of a directory

Before going live: inbox identify FILE --format NAME shows what is taken for each message's identity.

Exit codes: 0 all applied or duplicates, 1 failed, 2 wrong usage, 3 something is in quarantine, 130 stopped at once.`;

/** `inbox run`: takes every message of a source to a handler, once. */
export function runCommand(io: Io, ended: Action): Command {
  return new Command("run")
    .description("take every message of a source to a handler and apply its effect once")
    .argument("<handler>", "a JavaScript or TypeScript module")
    .requiredOption(
      "--source <file>",
      "newline-delimited JSON, a document, or a directory of documents; - reads stdin",
    )
    .option("--consumer <name>", "who consumes; part of every identity")
    .option("--handler-version <text>", "written beside what this handler applied")
    .addOption(formatNameOption("--identity <name>", "how messages are named (default: cloudevents)"))
    .option("--id-path <path>", "lines are plain JSON with their id here (/order/id or order.id)")
    .addOption(idHeaderOption())
    .addOption(idRuleOption())
    .option("--producer <name>", "who produced them, where the messages do not say")
    .option("--key-path <path>", "where the key stands: messages of one key keep their order")
    .option("--type-path <path>", "where the type stands; with --id-path alone")
    .option("--tenant <name>", "the tenant of all messages")
    .option("--max-line-bytes <n>", "a longer line is rejected", wholeNumber(1, 512 * 1024 * 1024))
    .option("--max-file-bytes <n>", "a larger document is rejected", wholeNumber(1, 1024 * 1024 * 1024))
    .option(
      "--id-time <kind>",
      "ids carry when they were made: uuidv7, ulid, ksuid, objectid, or snowflake:EPOCH in ms since 1970",
      idTimeFrom,
    )
    .option("--lanes <n>", `transactions side by side (default: ${defaultLanes})`, wholeNumber(1, 64))
    .option("--max-batch <n>", "most messages in one transaction", wholeNumber(1, 10_000))
    .addOption(schemaOption())
    .addOption(configOption())
    .option("--no-migrate", "leave the inbox's tables as they are")
    .option("--no-resume", "begin at the file's start; what was applied before is found as a duplicate")
    .addOption(jsonOption())
    .addHelpText("after", notesOf(notes))
    .action(async (handlerPath: string, options: Options) => {
      const plan = planSource(options);
      const loaded = await loadHandler(handlerPath);
      const config = await loadConfig(io, options.config);
      const consumer = consumerOf(options, loaded);
      const lanes = options.lanes ?? loaded.options.lanes ?? defaultLanes;
      // Beside the lanes: quarantine, attempts, the worker's lease and the position.
      const database = await openDatabase(io, { local: "start", maxConnections: lanes + 4 });
      try {
        await prepare(io, database, loaded, options);
        const store = postgres(database.pool, { schema: options.schema, payloadKeys: config.payloadKeys });
        ended(await work(io, store, loaded, { ...options, consumer, lanes }, plan));
      } finally {
        await database.close();
      }
    });
}

/** A name of the user's own choosing: one made up here would change with a file's name, and history would run again. */
function consumerOf(options: Options, loaded: LoadedHandler): string {
  const consumer = options.consumer ?? loaded.options.consumer;
  if (consumer !== undefined) return consumer;
  throw new UsageError(
    "The consumer has no name. Give --consumer, or: export const options = { consumer: ... } in the handler's module.",
  );
}

async function prepare(
  io: Io,
  database: Database,
  { prepare }: LoadedHandler,
  { schema, migrate }: Options,
): Promise<void> {
  if (migrate) {
    const { from, to, applied } = await migrateSchema(driverFor(database.pool), { schema });
    if (applied.length > 0)
      io.say(`Migrated schema "${schema}" on ${database.description} from version ${from} to ${to}.`);
  }
  await prepare?.(database.pool);
}

async function work(
  io: Io,
  store: Store,
  loaded: LoadedHandler,
  options: Options & { readonly consumer: string; readonly lanes: number },
  plan: RunSourcePlan,
): Promise<ExitCode> {
  const { consumer } = options;
  const inbox = createInbox({
    ...loaded.options,
    ...{ store, consumer, lanes: options.lanes },
    ...(options.handlerVersion === undefined ? {} : { handlerVersion: options.handlerVersion }),
    ...(options.idTime === undefined ? {} : { idTime: options.idTime }),
    ...(options.maxBatch === undefined ? {} : { maxBatch: options.maxBatch }),
  });
  const opened = plan.open(
    {
      load: async (key) => (options.resume ? store.cursors.load(consumer, key) : undefined),
      save: (key, value) => store.cursors.save(consumer, key, value),
    },
    (text) => io.say(text),
  );
  const run = inbox.run(opened.source, loaded.handler);
  const signals = onStopSignals(() => {
    io.say("Stopping: finishing what is being handled. Once more stops at once.");
    void run.stop().catch(() => undefined);
  });
  const talk = startRunTalk(io, run, opened);
  let stats: RunStats;
  try {
    stats = await run.finished;
  } finally {
    talk.stop();
    signals.cancel();
  }
  return conclude(io, stats, opened, { ...options, consumer, stopped: signals.came });
}

interface Conclusion {
  readonly consumer: string;
  readonly schema: string;
  readonly json?: true;
  readonly stopped: boolean;
}

function conclude(io: Io, stats: RunStats, opened: RunSource, given: Conclusion): ExitCode {
  const summary = summaryOf(stats);
  const { source, fromStdin } = opened;
  const { unsettled, ignored } = opened.progress();
  if (given.json) {
    const { consumer, stopped } = given;
    io.print(JSON.stringify({ consumer, source: source.name, ...summary, ignored, unsettled, stopped }));
  }
  io.say(`${given.stopped ? "Stopped" : "Done"}: ${summaryLine(summary)}.`);
  for (const [reason, count] of Object.entries(ignored)) io.say(`${count} ignored: ${printable(reason)}.`);
  const flag = given.schema === "inbox" ? "" : ` --schema ${given.schema}`;
  if (quarantined(summary) > 0) {
    io.say(`${quarantined(summary)} went to quarantine. See: inbox quarantine groups${flag}`);
  }
  if (summary.waiting > 0) {
    io.say(`${summary.waiting} wait for another attempt, or for a decision. See: inbox pending list${flag}`);
  }
  if (unsettled > 0 && fromStdin) {
    io.say(`${unsettled} messages were read from stdin and not applied: send them again.`);
    return exitCodes.failed;
  }
  if (given.stopped && !fromStdin) io.say("The next run goes on where this one stopped.");
  return exitCodeOf(summary);
}

import { Command } from "commander";
import { createInbox } from "../../inbox/create-inbox.ts";
import type { RunStats } from "../../inbox/run.ts";
import { ndjson, type NdjsonSource } from "../../sources/ndjson/ndjson.ts";
import type { LineFormat } from "../../sources/ndjson/read-line.ts";
import { driverFor } from "../../store/postgres/drivers/detect.ts";
import { migrateSchema } from "../../store/postgres/migrate.ts";
import { postgres } from "../../store/postgres/postgres.ts";
import type { Store } from "../../store/store.ts";
import { openDatabase, type Database } from "../database.ts";
import { exitCodes, type ExitCode } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { loadHandler, type LoadedHandler } from "../load-handler.ts";
import { jsonOption, schemaOption, wholeNumber } from "../options.ts";
import type { Action } from "../program.ts";
import { exitCodeOf, quarantined, summaryLine, summaryOf } from "../run-summary.ts";
import { startRunTalk } from "../run-talk.ts";
import { onStopSignals } from "../stop-signals.ts";
import { UsageError } from "../usage-error.ts";

interface Options {
  readonly source: string;
  readonly consumer?: string;
  readonly handlerVersion?: string;
  readonly tenant?: string;
  readonly idPath?: string;
  readonly producer?: string;
  readonly keyPath?: string;
  readonly typePath?: string;
  readonly maxLineBytes?: number;
  readonly lanes?: number;
  readonly maxBatch?: number;
  readonly schema: string;
  readonly migrate: boolean;
  readonly resume: boolean;
  readonly json?: true;
}

const defaultLanes = 4;

const notes = `
The handler's module has the handler as its default export. It may also export "options" (what createInbox takes:
consumer, handlerVersion, payloadSchema, ...) and "prepare", a function that is given the database once before the first
message, to create the handler's own tables.

A file is worked through once: the position is kept in the database, and the next run goes on there.

Exit codes: 0 all applied or duplicates, 1 failed, 2 wrong usage, 3 something is in quarantine, 130 stopped at once.`;

/** `inbox run`: takes every message of a source to a handler, once. */
export function runCommand(io: Io, ended: Action): Command {
  return new Command("run")
    .description("take every message of a source to a handler and apply its effect once")
    .argument("<handler>", "a JavaScript or TypeScript module")
    .requiredOption("--source <file>", "newline-delimited JSON; - reads stdin")
    .option("--consumer <name>", "who consumes; part of every identity")
    .option("--handler-version <text>", "written beside what this handler applied")
    .option(
      "--id-path <path>",
      "lines are plain JSON with their id here (/order/id or order.id), not CloudEvents",
    )
    .option("--producer <name>", "who produced them; with --id-path")
    .option("--key-path <path>", "where the key stands: messages of one key keep their order; with --id-path")
    .option("--type-path <path>", "where the type stands; with --id-path")
    .option("--tenant <name>", "the tenant of all messages")
    .option("--max-line-bytes <n>", "a longer line is rejected", wholeNumber(1, 512 * 1024 * 1024))
    .option("--lanes <n>", `transactions side by side (default: ${defaultLanes})`, wholeNumber(1, 64))
    .option("--max-batch <n>", "most messages in one transaction", wholeNumber(1, 10_000))
    .addOption(schemaOption())
    .option("--no-migrate", "leave the inbox's tables as they are")
    .option("--no-resume", "begin at the file's start; what was applied before is found as a duplicate")
    .addOption(jsonOption())
    .addHelpText("after", notes)
    .action(async (handlerPath: string, options: Options) => {
      const format = formatOf(options);
      const loaded = await loadHandler(handlerPath);
      const lanes = options.lanes ?? loaded.options.lanes ?? defaultLanes;
      // Beside the lanes: quarantine, attempts, the worker's lease and the position.
      const database = await openDatabase(io, { local: "start", maxConnections: lanes + 4 });
      try {
        await prepare(io, database, loaded, options);
        const store = postgres(database.pool, { schema: options.schema });
        ended(await work(io, store, loaded, { ...options, lanes }, format));
      } finally {
        await database.close();
      }
    });
}

function formatOf({ idPath, producer, keyPath, typePath }: Options): LineFormat {
  if (idPath !== undefined) {
    if (producer === undefined)
      throw new UsageError("With --id-path, --producer must say who produced the messages.");
    return { idPath, producer, keyPath, typePath };
  }
  if (producer ?? keyPath ?? typePath)
    throw new UsageError("--producer, --key-path and --type-path need --id-path.");
  return "cloudevents";
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
  options: Options & { readonly lanes: number },
  format: LineFormat,
): Promise<ExitCode> {
  const consumer = options.consumer ?? loaded.options.consumer;
  if (consumer === undefined) {
    throw new UsageError(
      "The consumer has no name. Give --consumer, or: export const options = { consumer: ... } in the handler's module.",
    );
  }
  const fromStdin = options.source === "-";
  const inbox = createInbox({
    ...loaded.options,
    ...{ store, consumer, lanes: options.lanes },
    ...(options.handlerVersion === undefined ? {} : { handlerVersion: options.handlerVersion }),
    ...(options.maxBatch === undefined ? {} : { maxBatch: options.maxBatch }),
  });
  const source = ndjson({
    from: fromStdin ? process.stdin : options.source,
    format,
    tenant: options.tenant,
    maxLineBytes: options.maxLineBytes,
    checkpoints: {
      load: async (key) => (options.resume ? store.cursors.load(consumer, key) : undefined),
      save: (key, value) => store.cursors.save(consumer, key, value),
    },
    onNotice: (text) => io.say(text),
  });
  const run = inbox.run(source, loaded.handler);
  const signals = onStopSignals(() => {
    io.say("Stopping: finishing what is being handled. Once more stops at once.");
    void run.stop().catch(() => undefined);
  });
  const talk = startRunTalk(io, run, source, fromStdin ? undefined : options.source);
  let stats: RunStats;
  try {
    stats = await run.finished;
  } finally {
    talk.stop();
    signals.cancel();
  }
  return conclude(io, stats, source, { ...options, consumer, fromStdin, stopped: signals.came });
}

interface Conclusion {
  readonly consumer: string;
  readonly source: string;
  readonly schema: string;
  readonly json?: true;
  readonly fromStdin: boolean;
  readonly stopped: boolean;
}

function conclude(io: Io, stats: RunStats, source: NdjsonSource, given: Conclusion): ExitCode {
  const summary = summaryOf(stats);
  const { unsettled } = source.progress();
  if (given.json) {
    const { consumer, stopped } = given;
    io.print(JSON.stringify({ consumer, source: source.name, ...summary, unsettled, stopped }));
  }
  io.say(`${given.stopped ? "Stopped" : "Done"}: ${summaryLine(summary)}.`);
  if (quarantined(summary) > 0) {
    const flag = given.schema === "inbox" ? "" : ` --schema ${given.schema}`;
    io.say(`${quarantined(summary)} went to quarantine. See: inbox quarantine list${flag}`);
  }
  if (unsettled > 0 && given.fromStdin) {
    io.say(`${unsettled} messages were read from stdin and not applied: send them again.`);
    return exitCodes.failed;
  }
  if (given.stopped && !given.fromStdin) io.say("The next run goes on where this one stopped.");
  return exitCodeOf(summary);
}

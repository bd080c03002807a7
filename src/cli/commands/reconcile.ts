import { createWriteStream } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { Command, InvalidArgumentError, Option } from "commander";
import { parseRfc3339 } from "../../message/rfc3339.ts";
import { reconcile } from "../../reconcile/reconcile.ts";
import { sentFile } from "../../reconcile/sent-file.ts";
import { sentInbox, sentQuery } from "../../reconcile/sent-query.ts";
import type { SentSource } from "../../reconcile/sent.ts";
import { parseDuration } from "../../retention/duration.ts";
import { openDatabase, type Database } from "../database.ts";
import { exitCodes } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { notesOf } from "../notes.ts";
import { jsonOption, schemaOption, wholeNumber } from "../options.ts";
import type { Action } from "../program.ts";
import { UsageError } from "../usage-error.ts";
import { createPrinter, needsAPerson } from "../reconcile-output.ts";

interface Options {
  readonly consumer: string;
  readonly file?: string;
  readonly query?: string;
  readonly queryFile?: string;
  readonly otherConsumer?: string;
  readonly otherSchema: string;
  readonly sentDatabase?: string;
  readonly producer?: string;
  readonly tenant?: string;
  readonly format?: "ids" | "ndjson";
  readonly fingerprint?: "bytes" | "json";
  readonly since?: Date;
  readonly until?: Date;
  readonly margin: number;
  readonly limit?: number;
  readonly schema: string;
  readonly json?: true;
}

const notes = `
What was sent is one of: a file with an id or a JSON object a line, a query (columns id and, where there are any,
producer, tenant, time, payload; $1 and $2 are the span), or what another consumer has applied. --sent-database names
the environment variable that holds the URL of the producer's database. Nothing is written.

Examples:
  $ inbox reconcile --consumer accounting --producer payments --file sent.txt
  $ inbox reconcile --consumer accounting --producer payments --sent-database SHOP_URL \\
      --query 'select id, sent_at as time from outbox where sent_at >= $1 and sent_at < $2' --since 2026-11-29
  $ inbox reconcile --consumer projection --other-consumer accounting --json

Exit codes: 0 all that was sent is applied or on its way, 1 failed, 2 wrong usage, 3 something is missing, extra, in
conflict, in quarantine or unaccounted for.`;

/** `inbox reconcile`: what a producer says it sent, against what a consumer has applied. */
export function reconcileCommand(io: Io, ended: Action): Command {
  return new Command("reconcile")
    .description("compare what a producer says it sent with what a consumer has applied")
    .requiredOption("--consumer <name>", "whose ledger is compared")
    .option("--file <path>", "a list of what was sent; - is stdin")
    .option("--query <sql>", "a select statement that lists what was sent")
    .option("--query-file <path>", "the same, in a file")
    .option("--other-consumer <name>", "what this consumer has applied, as if it had been sent")
    .option("--other-schema <name>", "the schema of that consumer's inbox", "inbox")
    .option("--sent-database <variable>", "the environment variable that names the producer's database")
    .option("--producer <name>", "the producer of messages that name none; only its messages can be extra")
    .option("--tenant <name>", "the tenant of messages that name none; only its messages can be extra")
    .addOption(
      new Option("--format <format>", "of the file (default: by its name)").choices(["ids", "ndjson"]),
    )
    .addOption(
      new Option("--fingerprint <by>", "how payloads in the list are compared").choices(["bytes", "json"]),
    )
    .option("--since <time>", "the span's beginning: a date, or an RFC 3339 time", timeOf)
    .option("--until <time>", "its end, not part of it (default: the margin before now)", timeOf)
    .addOption(
      new Option("--margin <duration>", "clock skew and time under way")
        .argParser(durationOf)
        .default(300_000, "5m"),
    )
    .option(
      "--limit <n>",
      "print at most so many differences (default: 100, with --json all)",
      wholeNumber(0, 1e9),
    )
    .addOption(schemaOption())
    .addOption(jsonOption())
    .addHelpText("after", notesOf(notes))
    .action(async (options: Options) => {
      checkSource(options);
      const database = await openDatabase(io, { local: "existing", maxConnections: 3 });
      let sentDatabase: Database | undefined;
      let spool: Spool | undefined;
      try {
        sentDatabase = await openSent(io, options.sentDatabase);
        spool = options.file === "-" ? await spoolStdin() : undefined;
        const printer = createPrinter(io, options.json === true, options.limit);
        const report = await reconcile(database.pool, {
          consumer: options.consumer,
          schema: options.schema,
          sent: await sourceOf(options, (sentDatabase ?? database).pool, spool?.path),
          ...{ since: options.since, until: options.until, marginMs: options.margin },
          ...(options.producer === undefined ? {} : { producers: [options.producer] }),
          tenant: options.tenant,
          onDifference: printer.difference,
        });
        printer.report(report);
        ended(needsAPerson(report) ? exitCodes.foundSomething : exitCodes.fine);
      } finally {
        await spool?.remove();
        await sentDatabase?.close();
        await database.close();
      }
    });
}

function checkSource({ file, query, queryFile, otherConsumer, sentDatabase }: Options): void {
  const given = [file, query, queryFile, otherConsumer].filter((value) => value !== undefined);
  if (given.length !== 1) {
    throw new UsageError(
      "Give one list of what was sent: --file, --query, --query-file or --other-consumer.",
    );
  }
  if (sentDatabase !== undefined && file !== undefined) {
    throw new UsageError("--sent-database goes with --query, --query-file or --other-consumer.");
  }
}

async function sourceOf(options: Options, pool: unknown, spooled: string | undefined): Promise<SentSource> {
  const { file, query, queryFile, otherConsumer: consumer, otherSchema, producer, tenant, format } = options;
  const fingerprint = options.fingerprint && { by: options.fingerprint };
  if (file !== undefined) return sentFile(spooled ?? file, { producer, tenant, format, fingerprint });
  if (consumer !== undefined) return sentInbox(pool, { consumer, schema: otherSchema, producer });
  const text = query ?? (await readFile(queryFile ?? "", "utf8"));
  return sentQuery(pool, text, { producer, tenant, fingerprint, name: queryFile });
}

/** By the name of a variable, never by the URL: the command line is for everybody to see. */
async function openSent(io: Io, variable: string | undefined): Promise<Database | undefined> {
  if (variable === undefined) return undefined;
  const url = io.env[variable];
  if (url === undefined || url === "") {
    throw new UsageError(
      variable.includes(":")
        ? "--sent-database takes the name of an environment variable, not a URL."
        : `The environment variable ${variable} is not set.`,
    );
  }
  return openDatabase(
    { ...io, env: { ...io.env, DATABASE_URL: url } },
    { local: "existing", maxConnections: 1 },
  );
}

interface Spool {
  readonly path: string;
  remove(): Promise<void>;
}

/** A list is read twice, which a pipe cannot be. */
async function spoolStdin(): Promise<Spool> {
  const directory = await mkdtemp(join(tmpdir(), "inbox-sent-"));
  const path = join(directory, "stdin");
  const remove = (): Promise<void> => rm(directory, { recursive: true, force: true });
  try {
    await pipeline(process.stdin, createWriteStream(path, { mode: 0o600 }));
    return { path, remove };
  } catch (error) {
    await remove();
    throw error;
  }
}

function timeOf(text: string): Date {
  const time = parseRfc3339(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00:00Z` : text);
  if (time === undefined) {
    throw new InvalidArgumentError("It must be a date or an RFC 3339 time, such as 2026-11-30T07:31:19Z.");
  }
  return time;
}

function durationOf(text: string): number {
  const ms = parseDuration(text);
  if (ms === undefined) throw new InvalidArgumentError("It must be a duration, such as 90s, 5m or 36h.");
  return ms;
}

import Table from "cli-table3";
import { Command, Option } from "commander";
import { printable } from "../../message/show-value.ts";
import { postgres } from "../../store/postgres/postgres.ts";
import type { QuarantineFilter, QuarantineRow } from "../../store/quarantine-entry.ts";
import { openDatabase } from "../database.ts";
import { exitCodes } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { jsonOption, schemaOption, wholeNumber } from "../options.ts";
import type { Action } from "../program.ts";

interface Options extends QuarantineFilter {
  readonly schema: string;
  readonly limit: number;
  readonly json?: true;
}

/** `inbox quarantine list`: one line an entry. */
export function quarantineListCommand(io: Io, ended: Action): Command {
  return new Command("list")
    .description("list what is in quarantine; with --json one object a line")
    .addOption(schemaOption())
    .option("--consumer <name>", "only this consumer's")
    .option("--code <code>", "only with this code, such as payload-conflict")
    .addOption(
      new Option("--status <status>", "only with this status")
        .choices(["open", "retried", "repaired", "discarded", "all"])
        .default("open"),
    )
    .option("--limit <n>", "at most so many entries", wholeNumber(1, 1_000), 100)
    .option("--after <id>", "entries that follow this one, to read on")
    .addOption(jsonOption())
    .action(async ({ schema, json, ...filter }: Options) => {
      const database = await openDatabase(io, { local: "existing", maxConnections: 1 });
      try {
        const rows = await postgres(database.pool, { schema }).quarantined.list(filter);
        if (json) for (const row of rows) io.print(JSON.stringify(row));
        else if (rows.length > 0) io.print(tableOf(rows));
        if (rows.length === 0) io.say("Nothing is in quarantine that fits.");
        const last = rows.at(-1);
        if (rows.length === filter.limit && last) io.say(`There may be more: --after ${last.id}`);
        ended(exitCodes.fine);
      } finally {
        await database.close();
      }
    });
}

function tableOf(rows: readonly QuarantineRow[]): string {
  const table = new Table({
    head: ["id", "last failed", "consumer", "producer", "message id", "code", "attempts", "error"],
    style: { head: [], border: [], compact: true },
  });
  for (const row of rows) {
    table.push([
      row.id,
      row.lastFailedAt.toISOString(),
      cell(row.consumer),
      cell(row.producer ?? "-"),
      cell(row.messageId ?? "-"),
      row.code,
      String(row.attempts),
      cell(row.error, 60),
    ]);
  }
  return table.toString();
}

/** What producers wrote may steer a terminal, and may be long. */
function cell(text: string, limit = 40): string {
  const safe = printable(text);
  return safe.length > limit ? `${safe.slice(0, limit - 1)}…` : safe;
}

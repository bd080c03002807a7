import type { Command } from "commander";
import type { QuarantineRow } from "../../store/quarantine-entry.ts";
import { exitCodes } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { jsonOption, wholeNumber } from "../options.ts";
import type { Action } from "../program.ts";
import { addFilter, filterOf, statusOption, type FilterOptions } from "../quarantine-filter.ts";
import { cell, tableOf } from "../table.ts";
import { storeCommand, withStore, type StoreOptions } from "../with-store.ts";

interface Options extends FilterOptions, StoreOptions {
  readonly limit: number;
  readonly after?: string;
  readonly json?: true;
}

/** `inbox quarantine list`: one line an entry. */
export function quarantineListCommand(io: Io, ended: Action): Command {
  return addFilter(storeCommand("list"))
    .description("list what is in quarantine, newest first; with --json one object a line")
    .addOption(statusOption())
    .option("--limit <n>", "at most so many entries", wholeNumber(1, 1_000), 100)
    .option("--after <id>", "entries that follow this one, to read on")
    .addOption(jsonOption())
    .action((options: Options) =>
      withStore(io, options, async ({ quarantine }) => {
        const { limit, after } = options;
        const rows = await quarantine.list({ ...filterOf(options), limit, after });
        if (options.json) for (const row of rows) io.print(JSON.stringify(row));
        else if (rows.length > 0) io.print(entryTable(rows));
        if (rows.length === 0) io.say("Nothing is in quarantine that fits.");
        const last = rows.at(-1);
        if (rows.length === limit && last) io.say(`There may be more: --after ${last.id}`);
        ended(exitCodes.fine);
      }),
    );
}

export const entryTable = (rows: readonly QuarantineRow[]): string =>
  tableOf(
    ["id", "status", "last failed", "consumer", "producer", "message id", "code", "attempts", "error"],
    rows.map((row) => [
      row.id,
      row.status,
      row.lastFailedAt.toISOString(),
      cell(row.consumer),
      cell(row.producer),
      cell(row.messageId),
      cell(row.code),
      String(row.attempts),
      cell(row.error, 60),
    ]),
  );

import type { Command } from "commander";
import type { RefusedEffect } from "../../store/outbox-operator.ts";
import { age } from "../age.ts";
import { exitCodes } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { jsonOption, wholeNumber } from "../options.ts";
import { addRefusedFilter, refusedFilterOf, type RefusedFilterOptions } from "../outbox-filter.ts";
import { statusOption } from "../quarantine-filter.ts";
import type { Action } from "../program.ts";
import { cell, tableOf } from "../table.ts";
import { storeCommand, withStore, type StoreOptions } from "../with-store.ts";

interface Options extends RefusedFilterOptions, StoreOptions {
  readonly limit: number;
  readonly after?: string;
  readonly json?: true;
}

/** `inbox outbox list`: one line a refused effect. */
export function outboxListCommand(io: Io, ended: Action): Command {
  return addRefusedFilter(storeCommand("list"))
    .description("list refused effects, newest first; with --json one object a line")
    .addOption(statusOption())
    .option("--limit <n>", "at most so many entries", wholeNumber(1, 1_000), 100)
    .option("--after <id>", "entries that follow this one, to read on")
    .addOption(jsonOption())
    .action((options: Options) =>
      withStore(io, options, async ({ outbox }) => {
        const { limit, after } = options;
        const rows = await outbox.list({ ...refusedFilterOf(options), limit, after });
        if (options.json) for (const row of rows) io.print(JSON.stringify(row));
        else if (rows.length > 0) io.print(refusedTable(rows));
        if (rows.length === 0) io.say("No effect was refused that fits.");
        const last = rows.at(-1);
        if (rows.length === limit && last) io.say(`There may be more: --after ${last.id}`);
        ended(exitCodes.fine);
      }),
    );
}

export const refusedTable = (rows: readonly RefusedEffect[]): string =>
  tableOf(
    ["id", "status", "refused", "destination", "producer", "effect id", "key", "code", "attempts", "error"],
    rows.map((row) => [
      row.id,
      row.status,
      `${age(row.refusedMs)} ago`,
      cell(row.destination),
      cell(row.producer),
      cell(row.effectId),
      cell(row.key),
      cell(row.code),
      String(row.attempts),
      cell(row.error, 60),
    ]),
  );

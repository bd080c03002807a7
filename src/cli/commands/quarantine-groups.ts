import type { Command } from "commander";
import type { QuarantineGroup } from "../../store/quarantine-entry.ts";
import { exitCodes } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { jsonOption, wholeNumber } from "../options.ts";
import type { Action } from "../program.ts";
import { addFilter, filterOf, statusOption, type FilterOptions } from "../quarantine-filter.ts";
import { cell, counted, tableOf } from "../table.ts";
import { storeCommand, withStore, type StoreOptions } from "../with-store.ts";

interface Options extends FilterOptions, StoreOptions {
  readonly limit: number;
  readonly json?: true;
}

/** `inbox quarantine groups`: failures that look alike, one line a group. */
export function quarantineGroupsCommand(io: Io, ended: Action): Command {
  return addFilter(storeCommand("groups"))
    .description("count failures that look alike; with --json one object a line")
    .addOption(statusOption())
    .option("--limit <n>", "at most so many groups", wholeNumber(1, 10_000), 100)
    .addOption(jsonOption())
    .action((options: Options) =>
      withStore(io, options, async ({ quarantine }) => {
        const groups = await quarantine.groups(filterOf(options), options.limit);
        if (options.json) for (const group of groups) io.print(JSON.stringify(group));
        else if (groups.length > 0) io.print(groupTable(groups));
        if (groups.length === 0) io.say("Nothing is in quarantine that fits.");
        for (const { id, kind, by, matched, decided, skipped } of await quarantine.unfinished()) {
          const left = counted(matched - decided - skipped, "entry", "entries");
          io.say(
            `Decision ${id} (${kind} by ${cell(by)}) has ${left} left. Run: inbox quarantine resume ${id}`,
          );
        }
        ended(exitCodes.fine);
      }),
    );
}

export const groupTable = (groups: readonly QuarantineGroup[]): string =>
  tableOf(
    ["group", "entries", "consumer", "code", "first failed", "last failed", "sample", "error"],
    groups.map((group) => [
      group.group,
      String(group.count),
      cell(group.consumer),
      cell(group.code),
      group.firstFailedAt.toISOString(),
      group.lastFailedAt.toISOString(),
      group.sample,
      cell(group.error, 80),
    ]),
  );

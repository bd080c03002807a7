import type { Command } from "commander";
import type { RefusedGroup } from "../../store/outbox-operator.ts";
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
  readonly json?: true;
}

/** `inbox outbox groups`: refusals that look alike, one line a group. */
export function outboxGroupsCommand(io: Io, ended: Action): Command {
  return addRefusedFilter(storeCommand("groups"))
    .description("count refusals that look alike, by destination and error; with --json one object a line")
    .addOption(statusOption())
    .option("--limit <n>", "at most so many groups", wholeNumber(1, 10_000), 100)
    .addOption(jsonOption())
    .action((options: Options) =>
      withStore(io, options, async ({ outbox }) => {
        const groups = await outbox.groups(refusedFilterOf(options), options.limit);
        if (options.json) for (const group of groups) io.print(JSON.stringify(group));
        else if (groups.length > 0) io.print(refusedGroupTable(groups));
        if (groups.length === 0) io.say("No effect was refused that fits.");
        ended(exitCodes.fine);
      }),
    );
}

export const refusedGroupTable = (groups: readonly RefusedGroup[]): string =>
  tableOf(
    ["group", "effects", "destination", "code", "oldest", "last refused", "sample", "error"],
    groups.map((group) => [
      group.group,
      String(group.count),
      cell(group.destination),
      cell(group.code),
      age(group.oldestMs),
      group.lastRefusedAt.toISOString(),
      group.sample,
      cell(group.error, 80),
    ]),
  );

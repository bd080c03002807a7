import type { Command } from "commander";
import { exitCodes } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { jsonOption, wholeNumber } from "../options.ts";
import { addPendingFilter, pendingFilterOf, type PendingFilterOptions } from "../pending-filter.ts";
import type { Action } from "../program.ts";
import { cell, tableOf } from "../table.ts";
import { storeCommand, withStore, type StoreOptions } from "../with-store.ts";

interface Options extends PendingFilterOptions, StoreOptions {
  readonly limit: number;
  readonly after?: string;
  readonly json?: true;
}

/** `inbox pending list`: what is stored and not handled yet. */
export function pendingListCommand(io: Io, ended: Action): Command {
  return addPendingFilter(storeCommand("list"))
    .description(
      "list messages that are stored and not handled yet, in their order; with --json one object a line",
    )
    .option("--message-id <id>", "only this message")
    .option("--limit <n>", "at most so many", wholeNumber(1, 1_000), 100)
    .option("--after <position>", "messages behind this position, to read on")
    .addOption(jsonOption())
    .action((options: Options) =>
      withStore(io, options, async ({ pending }) => {
        const { limit, after } = options;
        const rows = await pending.list({ ...pendingFilterOf(options), limit, after });
        if (options.json) for (const row of rows) io.print(JSON.stringify(row));
        else if (rows.length > 0) {
          io.print(
            tableOf(
              [
                "position",
                "state",
                "received",
                "due",
                "consumer",
                "producer",
                "message id",
                "key",
                "attempts",
                "error",
              ],
              rows.map((row) => [
                row.position,
                row.state,
                row.receivedAt.toISOString(),
                row.dueAt?.toISOString() ?? "-",
                cell(row.consumer),
                cell(row.producer),
                cell(row.messageId),
                cell(row.key),
                String(row.attempts),
                cell(row.error, 60),
              ]),
            ),
          );
        }
        if (rows.length === 0) io.say("Nothing is pending that fits.");
        const last = rows.at(-1);
        if (rows.length === limit && last) io.say(`There may be more: --after ${last.position}`);
        ended(exitCodes.fine);
      }),
    );
}

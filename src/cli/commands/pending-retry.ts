import type { Command } from "commander";
import { printable } from "../../message/show-value.ts";
import { exitCodes } from "../exit-codes.ts";
import { findPending } from "../find-pending.ts";
import type { Io } from "../io.ts";
import { notesOf } from "../notes.ts";
import { jsonOption } from "../options.ts";
import { addPendingFilter, pendingFilterOf, type PendingFilterOptions } from "../pending-filter.ts";
import type { Action } from "../program.ts";
import { counted } from "../table.ts";
import { UsageError } from "../usage-error.ts";
import { storeCommand, withStore, type StoreOptions } from "../with-store.ts";

interface Options extends Omit<PendingFilterOptions, "messageId">, StoreOptions {
  readonly all?: true;
  readonly dryRun?: true;
  readonly json?: true;
}

const notes = `
Only the waiting is cut short: attempts count on, and what waits behind another message of its key goes on waiting.

Examples:
  $ inbox pending retry order-17
  $ inbox pending retry --consumer accounting --code handler-failed --dry-run

Exit codes: 0 fine, 1 failed, or the message is not scheduled, 2 wrong usage.`;

/** `inbox pending retry`: lets scheduled messages run now. */
export function pendingRetryCommand(io: Io, ended: Action): Command {
  return addPendingFilter(storeCommand("retry"))
    .description("let messages that are scheduled for later run now")
    .argument("[id]", "a message's id")
    .option("--all", "all that are scheduled")
    .option("--dry-run", "show how many there are, and leave them as they are")
    .addOption(jsonOption())
    .addHelpText("after", notesOf(notes))
    .action((id: string | undefined, options: Options) => {
      const filter = pendingFilterOf(options);
      const filtered = Object.values(filter).some((part) => part !== undefined);
      if (id === undefined && !filtered && options.all !== true) {
        throw new UsageError("Say which: an id, a filter such as --consumer, or --all.");
      }
      return withStore(io, options, async ({ pending }) => {
        if (id === undefined) {
          const scheduled = { ...filter, state: "scheduled" } as const;
          const entries = options.dryRun
            ? await pending.count(scheduled)
            : await pending.retryAllNow(scheduled);
          if (options.json)
            io.print(JSON.stringify(options.dryRun ? { scheduled: entries } : { due: entries }));
          const messages = counted(entries, "message", "messages");
          io.say(options.dryRun ? `${messages} scheduled.` : `${messages} may run now.`);
          return ended(exitCodes.fine);
        }
        const message = await findPending(io, pending, id, options);
        if (message === undefined) return ended(exitCodes.failed);
        const shown = await pending.show(message);
        if (options.dryRun) {
          if (options.json)
            io.print(JSON.stringify({ ...message, state: shown?.state, dueAt: shown?.dueAt }));
          io.say(`Message ${printable(id)} is ${shown?.state ?? "not pending any more"}.`);
          return ended(shown?.state === "scheduled" ? exitCodes.fine : exitCodes.failed);
        }
        const due = await pending.retryNow(message);
        if (options.json) io.print(JSON.stringify({ ...message, due }));
        io.say(
          due
            ? `Message ${printable(id)} may run now.`
            : `inbox: Message ${printable(id)} is not scheduled for later, or is being handled. See: inbox explain ${printable(id)}`,
        );
        ended(due ? exitCodes.fine : exitCodes.failed);
      });
    });
}

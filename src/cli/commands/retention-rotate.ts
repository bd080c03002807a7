import type { Command } from "commander";
import { createCleanup } from "../../retention/cleanup.ts";
import { showDuration } from "../../retention/duration.ts";
import { exitCodes } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { notesOf } from "../notes.ts";
import { jsonOption } from "../options.ts";
import type { Action } from "../program.ts";
import { cell } from "../table.ts";
import { storeCommand, withStore, type StoreOptions } from "../with-store.ts";

interface Options extends StoreOptions {
  readonly json?: true;
}

const notes = `
In place of sweeps, for ledgers so large that deleting rows costs too much: the ledger is two tables, and the older one is
emptied as a whole once all in it is older than the longest window. Identities are kept for one to two windows; every
consumer needs a window; it must be the owner of the tables. Run it from cron, more often than the window: it does nothing
while it is too early.

Exit codes: 0 rotated, or too early; 1 failed; 2 wrong usage; 3 claims were in the way, or a source makes no progress.`;

/** `inbox retention rotate`: forgets a whole generation. */
export const retentionRotateCommand = (io: Io, ended: Action): Command =>
  storeCommand("rotate")
    .description("open another generation of the ledger, and forget the one before at once")
    .addOption(jsonOption())
    .addHelpText("after", notesOf(notes))
    .action((options: Options) =>
      withStore(io, options, async ({ store }) => {
        const rotated = await createCleanup({ store }).rotate();
        if (options.json) io.print(JSON.stringify(rotated));
        const sources = rotated.waitsFor.map((source) => cell(source)).join(", ");
        const says: Record<typeof rotated.ended, string> = {
          rotated: `Another generation is open, after ${Math.round(rotated.durationMs)} ms.`,
          "too young": `It is too early: the closed generation is kept for ${showDuration(rotated.windowMs)}.`,
          waits: `Nothing is forgotten: ${sources} makes no progress.`,
          busy: "Claims were in the way. Try again soon.",
        };
        io.say(says[rotated.ended]);
        ended(
          rotated.ended === "busy" || rotated.ended === "waits" ? exitCodes.foundSomething : exitCodes.fine,
        );
      }),
    );

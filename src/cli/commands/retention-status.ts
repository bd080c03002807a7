import type { Command } from "commander";
import { createCleanup } from "../../retention/cleanup.ts";
import { exitCodes } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { notesOf } from "../notes.ts";
import { jsonOption } from "../options.ts";
import type { Action } from "../program.ts";
import { needsLook, printStatus } from "../retention-status-output.ts";
import { storeCommand, withStore, type StoreOptions } from "../with-store.ts";

interface Options extends StoreOptions {
  readonly json?: true;
}

const notes = `
Exit codes: 0 fine, 1 failed, 2 wrong usage, 3 something keeps identities longer than their window: a source that makes
no progress, or none that is known, a sweep that failed, or cleanup that is behind.`;

/** `inbox retention status`: windows, what is forgotten, and what forgetting waits for. */
export const retentionStatusCommand = (io: Io, ended: Action): Command =>
  storeCommand("status")
    .description("show windows, what has been forgotten, and what forgetting waits for")
    .addOption(jsonOption())
    .addHelpText("after", notesOf(notes))
    .action((options: Options) =>
      withStore(io, options, async ({ store }) => {
        const status = await createCleanup({ store }).status();
        if (options.json) io.print(JSON.stringify(status));
        else printStatus(io, status);
        ended(needsLook(status) ? exitCodes.foundSomething : exitCodes.fine);
      }),
    );

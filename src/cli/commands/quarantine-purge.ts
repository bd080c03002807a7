import type { Command } from "commander";
import { addDeciderOptions, deciderOf, type DeciderOptions } from "../decider-options.ts";
import { duration } from "../duration.ts";
import { exitCodes } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { notesOf } from "../notes.ts";
import { jsonOption } from "../options.ts";
import type { Action } from "../program.ts";
import { onStopSignals } from "../stop-signals.ts";
import { counted } from "../table.ts";
import { storeCommand, withStore, type StoreOptions } from "../with-store.ts";

interface Options extends DeciderOptions, StoreOptions {
  readonly decidedBefore: number;
  readonly consumer?: string;
  readonly dryRun?: true;
  readonly json?: true;
}

const notes = `
What nobody has decided on is never removed. Decisions stay, and so do identities: a redelivery of what was discarded is
still known.

Examples:
  $ inbox quarantine purge --decided-before 90d --dry-run
  $ inbox quarantine purge --decided-before 90d --why "payloads are kept for 90 days"`;

/** `inbox quarantine purge`: removes entries that were decided on long ago. */
export function quarantinePurgeCommand(io: Io, ended: Action): Command {
  const command = storeCommand("purge")
    .description("remove entries that were decided on long ago, with their payloads")
    .requiredOption("--decided-before <age>", "decided on longer ago than this, such as 90d", duration)
    .option("--consumer <name>", "only this consumer's")
    .option("--dry-run", "show how many would be removed, and remove nothing");
  return addDeciderOptions(command)
    .addOption(jsonOption())
    .addHelpText("after", notesOf(notes))
    .action((options: Options) =>
      withStore(io, options, async ({ quarantine }) => {
        const chosen = { decidedBeforeMs: options.decidedBefore, consumer: options.consumer };
        if (options.dryRun) {
          const entries = await quarantine.countPurgeable(chosen);
          if (options.json) io.print(JSON.stringify({ entries }));
          io.say(`${counted(entries, "entry", "entries")} would be removed.`);
          return ended(exitCodes.fine);
        }
        const decider = await deciderOf(io, options);
        const stop = new AbortController();
        const signals = onStopSignals(() => stop.abort());
        try {
          const removed = await quarantine.purge({ ...chosen, signal: stop.signal }, decider);
          if (options.json) io.print(JSON.stringify({ removed }));
          io.say(`${counted(removed, "entry", "entries")} removed.`);
        } finally {
          signals.cancel();
        }
        ended(exitCodes.fine);
      }),
    );
}

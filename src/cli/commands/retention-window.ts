import { Argument, InvalidArgumentError, type Command } from "commander";
import { parseDuration, showDuration } from "../../retention/duration.ts";
import { createRetentionAdmin } from "../../retention/desk.ts";
import { addDeciderOptions, deciderOf, type DeciderOptions } from "../decider-options.ts";
import { exitCodes } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { notesOf } from "../notes.ts";
import { jsonOption } from "../options.ts";
import type { Action } from "../program.ts";
import { cell, counted } from "../table.ts";
import { storeCommand, withStore, type StoreOptions } from "../with-store.ts";

interface Options extends StoreOptions, DeciderOptions {
  readonly consumer: string;
  readonly producer?: string;
  readonly dryRun?: true;
  readonly json?: true;
}

const notes = `
How long it must be is derived by: inbox retention plan. What is forgotten stays forgotten, and copies of it are late,
however long the window is made afterwards. A process that declares a longer windowMs makes it longer again.

Examples:
  $ inbox retention window 14d --consumer accounting --why "brokers keep 7d, outages of 2d"
  $ inbox retention window 2d --consumer accounting --producer clicks --dry-run
  $ inbox retention window forever --consumer accounting --why "until the audit is over"`;

/** `inbox retention window`: sets how long identities of a consumer are kept. */
export function retentionWindowCommand(io: Io, ended: Action): Command {
  const command = storeCommand("window")
    .description("set how long identities of a consumer are kept")
    .addArgument(new Argument("<duration>", "such as 14d, or forever").argParser(windowOf))
    .requiredOption("--consumer <name>", "whose identities")
    .option("--producer <name>", "only those of this producer's messages")
    .option("--dry-run", "tell how many identities are older, and change nothing");
  return addDeciderOptions(command)
    .addOption(jsonOption())
    .addHelpText("after", notesOf(notes))
    .action((window: number, options: Options) =>
      withStore(io, options, async ({ store }) => {
        const admin = createRetentionAdmin({ store });
        const scope = { consumer: options.consumer, producer: options.producer };
        const windowMs = Number.isFinite(window) ? window : undefined;
        if (options.dryRun) {
          const identities = windowMs === undefined ? 0 : await admin.countOlder(scope, windowMs);
          if (options.json) io.print(JSON.stringify({ identities }));
          io.say(`${counted(identities, "identity is", "identities are")} older, by the calendar.`);
          return ended(exitCodes.fine);
        }
        const set = await admin.setWindow(scope, windowMs, await deciderOf(io, options));
        if (options.json) io.print(JSON.stringify(set));
        const of = `${cell(set.consumer)}${set.producer === undefined ? "" : ` from ${cell(set.producer)}`}`;
        const kept = set.windowMs === undefined ? "for ever" : `for ${showDuration(set.windowMs)}`;
        io.say(`Identities of ${of} are kept ${kept}.`);
        ended(exitCodes.fine);
      }),
    );
}

function windowOf(text: string): number {
  if (text === "forever") return Number.POSITIVE_INFINITY;
  const ms = parseDuration(text);
  if (ms === undefined || ms === 0)
    throw new InvalidArgumentError("It must be forever, or a duration, such as 36h, 7d or 1d12h.");
  return ms;
}

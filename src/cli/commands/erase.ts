import { InvalidArgumentError, type Command } from "commander";
import { createRetentionAdmin } from "../../retention/desk.ts";
import type { EffectName } from "../../store/retention-desk.ts";
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
  readonly producer: string;
  readonly tenant: string;
  readonly effect: readonly EffectName[];
  readonly discard?: true;
  readonly dryRun?: true;
  readonly json?: true;
}

const notes = `
Erased are the bodies and headers in pending, quarantine and repairs, answers to requests, texts of errors, and what is
kept of the message's effects. The identity stays, so a redelivery is known and nothing runs twice; and it is kept who
erased it, when and why. What handlers wrote into your own tables is yours to erase; and backups, the server's log of
changes and files of exports keep what they have.

Examples:
  $ inbox erase order-17 --consumer accounting --producer shop --dry-run
  $ inbox erase order-17 --consumer accounting --producer shop --why "request of 3 May, ticket 812"
  $ inbox erase order-17 --consumer accounting --producer shop --effect email/receipt-17 --why "..."`;

/** `inbox erase`: erases the bodies of a message, for good. */
export function eraseCommand(io: Io, ended: Action): Command {
  const command = storeCommand("erase")
    .description("erase the bodies of a message wherever they are kept; its identity stays")
    .argument("<id>", "the message's id")
    .requiredOption("--consumer <name>", "whose message")
    .requiredOption("--producer <name>", "who sent it")
    .option("--tenant <name>", "its tenant", "")
    .option(
      "--effect <destination/id>",
      "an effect of it under an id of its own; may be given again",
      again,
      [],
    )
    .option("--discard", "also if it is not handled yet: then it never will be")
    .option("--dry-run", "tell what would be erased, and erase nothing");
  return addDeciderOptions(command)
    .addOption(jsonOption())
    .addHelpText("after", notesOf(notes))
    .action((id: string, options: Options) =>
      withStore(io, options, async ({ store }) => {
        const { consumer, producer, tenant, effect: effects, discard, dryRun } = options;
        const decider = dryRun ? { by: "nobody", why: "a dry run" } : await deciderOf(io, options);
        const admin = createRetentionAdmin({ store });
        const erased = await admin.erase(consumer, { tenant, producer, id }, decider, {
          effects,
          discard,
          dryRun,
        });
        if (options.json) io.print(JSON.stringify(erased));
        const places = Object.entries<number>({ ...erased }).filter(([, rows]) => rows > 0);
        const what = places.map(([place, rows]) => `${place} (${counted(rows, "row", "rows")})`).join(", ");
        const verb = dryRun ? "would be erased" : "erased";
        io.say(
          places.length === 0 ? `No body of ${cell(id)} is kept.` : `Bodies of ${cell(id)} ${verb}: ${what}.`,
        );
        ended(exitCodes.fine);
      }),
    );
}

function again(text: string, before: readonly EffectName[]): readonly EffectName[] {
  const at = text.indexOf("/");
  if (at < 1 || at === text.length - 1)
    throw new InvalidArgumentError("It must be a destination and an id, such as email/receipt-17.");
  return [...before, { destination: text.slice(0, at), id: text.slice(at + 1) }];
}

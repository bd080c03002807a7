import type { Command } from "commander";
import { explain, type Explanation } from "../../explain/explain.ts";
import { printable } from "../../message/show-value.ts";
import { exitCodes } from "../exit-codes.ts";
import { explanationLines } from "../explanation-lines.ts";
import type { Io } from "../io.ts";
import { notesOf } from "../notes.ts";
import { jsonOption } from "../options.ts";
import type { Action } from "../program.ts";
import { storeCommand, withStore, type StoreOptions } from "../with-store.ts";

interface Options extends StoreOptions {
  readonly consumer?: string;
  readonly producer?: string;
  readonly tenant?: string;
  readonly json?: true;
}

const notes = `
With --consumer and --producer (and --tenant, where there are tenants) a message is looked up by its key; without, the
whole ledger is searched for its id, which takes its time where the ledger is long. A record that a cursor tells apart is
looked up by its place, TOPIC-ID/PARTITION/OFFSET.

Examples:
  $ inbox explain order-17 --consumer accounting --producer shop
  $ inbox explain order-17

Exit codes: 0 known, 1 failed, or nothing is known of it, 2 wrong usage, 3 it waits for a decision.`;

/** `inbox explain`: what became of a message, and what it waits for. */
export function explainCommand(io: Io, ended: Action): Command {
  return storeCommand("explain")
    .description("tell what became of a message, and what it waits for; with --json one object a message")
    .argument("<id>", "the message's id")
    .option("--consumer <name>", "who consumes it")
    .option("--producer <name>", "who sent it")
    .option("--tenant <name>", "of which tenant")
    .addOption(jsonOption())
    .addHelpText("after", notesOf(notes))
    .action((id: string, options: Options) =>
      withStore(io, options, async ({ store }) => {
        const { consumer, producer, tenant } = options;
        const all = await explain(store, { id, consumer, producer, tenant });
        const known = all.filter(({ state }) => state !== "unknown");
        if (options.json) for (const one of all) io.print(JSON.stringify(one));
        else if (known.length > 0)
          io.print(known.map((one) => explanationLines(one).join("\n")).join("\n\n"));
        if (known.length === 0) {
          io.say(`inbox: Nothing is known of a message ${printable(id)}.`);
          return ended(exitCodes.failed);
        }
        ended(known.some(waitsForDecision) ? exitCodes.foundSomething : exitCodes.fine);
      }),
    );
}

const waitsForDecision = ({ openEntries, waitsFor }: Explanation): boolean =>
  openEntries.length > 0 || waitsFor === "decision";

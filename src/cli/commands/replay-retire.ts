import { Command } from "commander";
import { printable } from "../../message/show-value.ts";
import { caughtUp, retire } from "../../replay/retire.ts";
import type { CaughtUp } from "../../replay/replay-tables.ts";
import { openDatabase } from "../database.ts";
import { addDeciderOptions, deciderOf, type DeciderOptions } from "../decider-options.ts";
import { exitCodes } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { notesOf } from "../notes.ts";
import { jsonOption, schemaOption, wholeNumber } from "../options.ts";
import type { Action } from "../program.ts";
import { factLines } from "../table.ts";

interface Options extends DeciderOptions {
  readonly successor: string;
  readonly allowMissing?: number;
  readonly dryRun?: true;
  readonly schema: string;
  readonly json?: true;
}

const notes = `
The successor must have applied everything that the consumer has, as far as that is remembered. From then on no run and
no worker of the consumer starts, and those that run end within seconds. Its rows stay where they are.

Examples:
  $ inbox replay retire balances@2 --successor balances@3 --dry-run
  $ inbox replay retire balances@2 --successor balances@3 --by ann --why "version 3 has the fees"

Exit codes: 0 retired, or with --dry-run caught up, 1 failed or refused, 2 wrong usage, 3 not caught up (--dry-run).`;

/** `inbox replay retire`: a consumer that another one has taken over from. */
export function replayRetireCommand(io: Io, ended: Action): Command {
  return addDeciderOptions(new Command("retire"))
    .description("retire a consumer whose successor has caught up")
    .argument("<consumer>", "who is retired, such as balances@2")
    .requiredOption("--successor <consumer>", "who has taken over, such as balances@3")
    .option("--allow-missing <n>", "so many messages may be missing", wholeNumber(0, 1e12))
    .option("--dry-run", "only tell how both stand")
    .addOption(schemaOption())
    .addOption(jsonOption())
    .addHelpText("after", notesOf(notes))
    .action(async (consumer: string, options: Options) => {
      const { successor, allowMissing, schema } = options;
      const database = await openDatabase(io, { local: "existing", maxConnections: 1 });
      try {
        const both = { consumer, successor, schema };
        const show = (standing: CaughtUp): void =>
          io.print(options.json ? JSON.stringify(standing) : standingLines(standing).join("\n"));
        if (options.dryRun) {
          const standing = await caughtUp(database.pool, both);
          show(standing);
          const missing = standing.missing + standing.stored;
          ended(missing <= (allowMissing ?? 0) ? exitCodes.fine : exitCodes.foundSomething);
          return;
        }
        const decider = await deciderOf(io, options);
        show(await retire(database.pool, { ...both, ...decider, allowMissing }));
        io.say(`${printable(consumer)} is retired: ${printable(successor)} has taken over.`);
        ended(exitCodes.fine);
      } finally {
        await database.close();
      }
    });
}

const standingLines = ({ applied, missing, stored, pending, workers }: CaughtUp): readonly string[] =>
  factLines([
    ["applied", String(applied)],
    ["missing", String(missing)],
    ["successor waits with", String(stored)],
    ["its own pending", String(pending)],
    ["processes", String(workers)],
  ]);

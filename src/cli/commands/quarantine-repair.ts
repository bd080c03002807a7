import type { Command } from "commander";
import { printable } from "../../message/show-value.ts";
import { createQuarantine } from "../../quarantine/quarantine.ts";
import { bodyJson } from "../body-output.ts";
import { addDeciderOptions, deciderOf, type DeciderOptions } from "../decider-options.ts";
import { exitCodes } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { loadHandler } from "../load-handler.ts";
import { notesOf } from "../notes.ts";
import { jsonOption } from "../options.ts";
import type { Action } from "../program.ts";
import { addRepairOptions, changesAnything, changesOf, type RepairOptions } from "../repair-options.ts";
import { UsageError } from "../usage-error.ts";
import { storeCommand, withStore, type StoreOptions } from "../with-store.ts";
import { diffLines } from "./quarantine-show.ts";

interface Options extends DeciderOptions, RepairOptions, StoreOptions {
  readonly handler?: string;
  readonly dryRun?: true;
  readonly json?: true;
}

const notes = `
The entry keeps the body that came; the repaired one goes beside it, under the same identity unless another is given, and
through the normal claim. With --handler, the payload must fit the payloadSchema among the options of that module.

Examples:
  $ inbox quarantine show 17 --payload > fixed.json
  $ inbox quarantine repair 17 --payload fixed.json --dry-run
  $ inbox quarantine repair 17 --payload fixed.json --why "amount was a text"
  $ inbox quarantine repair 18 --id order-7b --why "the shop gave two orders one id"`;

/** `inbox quarantine repair`: gives an entry back with a changed message. */
export function quarantineRepairCommand(io: Io, ended: Action): Command {
  const command = addRepairOptions(storeCommand("repair"))
    .description("give an entry back to be handled with another payload, or under an identity")
    .argument("<id>", "the entry's id, from: inbox quarantine list")
    .option("--handler <module>", "the handler whose payload schema the payload must fit")
    .option("--dry-run", "show what would be changed, and change nothing");
  return addDeciderOptions(command)
    .addOption(jsonOption())
    .addHelpText("after", notesOf(notes))
    .action(async (id: string, options: Options) => {
      const changes = await changesOf(options);
      if (!changesAnything(changes)) {
        throw new UsageError("Say what to change: --payload FILE, or --id and other parts of the identity.");
      }
      const loaded = options.handler === undefined ? undefined : await loadHandler(options.handler);
      await withStore(io, options, async ({ store, hidden }) => {
        const quarantine = createQuarantine({
          store,
          payloadSchema: loaded?.options.payloadSchema,
          ...hidden,
        });
        const { diff, payload, ...rest } = await quarantine.previewRepair(id, changes);
        const preview = { id, message: { ...rest, ...bodyJson(payload) }, diff };
        if (options.dryRun) {
          if (options.json) io.print(JSON.stringify(preview));
          else io.print(diffLines(diff).join("\n"));
          io.say(`Entry ${printable(id)} would be handled as ${printable(`${rest.producer} ${rest.id}`)}.`);
          return ended(exitCodes.fine);
        }
        const decider = await deciderOf(io, options);
        const decision = await quarantine.repair(id, changes, decider);
        if (options.json) io.print(JSON.stringify({ ...preview, decision, kind: "repair" }));
        else io.print(diffLines(diff).join("\n"));
        io.say(`Entry ${printable(id)} is given back to be handled, repaired.`);
        ended(exitCodes.fine);
      });
    });
}

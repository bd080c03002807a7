import type { Command } from "commander";
import { readFile } from "node:fs/promises";
import { buffer } from "node:stream/consumers";
import { printable } from "../../message/show-value.ts";
import { bodyJson } from "../body-output.ts";
import { addDeciderOptions, deciderOf, type DeciderOptions } from "../decider-options.ts";
import { exitCodes } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { notesOf } from "../notes.ts";
import { jsonOption } from "../options.ts";
import type { Action } from "../program.ts";
import { UsageError } from "../usage-error.ts";
import { storeCommand, withStore, type StoreOptions } from "../with-store.ts";
import { diffLines } from "./quarantine-show.ts";

interface Options extends DeciderOptions, StoreOptions {
  readonly payload: string;
  readonly dryRun?: true;
  readonly json?: true;
}

const sameKey =
  "It goes under the same id, which is its idempotency key: a destination that remembers the key from the refused " +
  "attempt may answer as it did then, or refuse another body under it.";

const notes = `
The entry keeps the body that was refused, and the repaired one beside it. ${sameKey}
Where that is so, discard the effect and ask for another one under another id.

Examples:
  $ inbox outbox show 17 --payload > fixed.json
  $ inbox outbox repair 17 --payload fixed.json --dry-run
  $ inbox outbox repair 17 --payload fixed.json --why "amount was a text"`;

/** `inbox outbox repair`: gives a refused effect back with another payload. */
export function outboxRepairCommand(io: Io, ended: Action): Command {
  const command = storeCommand("repair")
    .description("give a refused effect back to be sent with another payload, under the same id")
    .argument("<id>", "the entry's id, from: inbox outbox list")
    .requiredOption("--payload <file>", "the payload to send instead; - is stdin")
    .option("--dry-run", "show what would be changed, and change nothing");
  return addDeciderOptions(command)
    .addOption(jsonOption())
    .addHelpText("after", notesOf(notes))
    .action(async (id: string, options: Options) => {
      const changes = { payload: await readPayload(options.payload) };
      await withStore(io, options, async ({ outbox }) => {
        const { diff, payload, headers } = await outbox.previewRepair(id, changes);
        const preview = { id, effect: { headers, ...bodyJson(payload) }, diff };
        if (options.dryRun) {
          if (options.json) io.print(JSON.stringify(preview));
          else io.print(diffLines(diff).join("\n"));
          io.say(`Effect ${printable(id)} would be sent with this payload. ${sameKey}`);
          return ended(exitCodes.fine);
        }
        const decider = await deciderOf(io, options);
        const decision = await outbox.repair(id, changes, decider);
        if (options.json) io.print(JSON.stringify({ ...preview, decision, kind: "repair" }));
        else io.print(diffLines(diff).join("\n"));
        io.say(`Effect ${printable(id)} is given back to be sent, repaired. ${sameKey}`);
        ended(exitCodes.fine);
      });
    });
}

async function readPayload(file: string): Promise<Uint8Array> {
  try {
    return file === "-" ? await buffer(process.stdin) : await readFile(file);
  } catch (error) {
    throw new UsageError(`${file} cannot be read: ${(error as Error).message}`);
  }
}

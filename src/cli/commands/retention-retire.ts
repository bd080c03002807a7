import type { Command } from "commander";
import { createRetentionAdmin } from "../../retention/desk.ts";
import { addDeciderOptions, deciderOf, type DeciderOptions } from "../decider-options.ts";
import { exitCodes } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { notesOf } from "../notes.ts";
import type { Action } from "../program.ts";
import { cell } from "../table.ts";
import { storeCommand, withStore, type StoreOptions } from "../with-store.ts";

interface Options extends StoreOptions, DeciderOptions {
  readonly consumer: string;
}

const notes = `
For a topic, queue or stream that the consumer does not read any more, under this name: nothing waits for its progress
then. One that reports again is waited for again, from the beginning.

Example:
  $ inbox retention retire kafka:payments-v1 --consumer accounting --why "replaced by payments-v2, drained on Monday"`;

/** `inbox retention retire`: says that a source will bring nothing again. */
export const retentionRetireCommand = (io: Io, ended: Action): Command =>
  addDeciderOptions(
    storeCommand("retire")
      .description("say that a source will bring nothing again, so that forgetting does not wait for it")
      .argument("<source>", "its name, as inbox retention status shows it")
      .requiredOption("--consumer <name>", "whose source"),
  )
    .addHelpText("after", notesOf(notes))
    .action((source: string, options: Options) =>
      withStore(io, options, async ({ store }) => {
        const decider = await deciderOf(io, options);
        await createRetentionAdmin({ store }).retire(options.consumer, source, decider);
        io.say(`Nothing of ${cell(options.consumer)} waits for ${cell(source)} any more.`);
        ended(exitCodes.fine);
      }),
    );

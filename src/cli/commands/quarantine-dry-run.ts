import type { Command } from "commander";
import { createInbox } from "../../inbox/create-inbox.ts";
import type { DryRun, DryRunAnswer } from "../../inbox/dry-run.ts";
import { printable } from "../../message/show-value.ts";
import { entryMissing, repairedMessage } from "../../quarantine/repair.ts";
import { exitCodes } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { loadHandler } from "../load-handler.ts";
import { notesOf } from "../notes.ts";
import { jsonOption } from "../options.ts";
import type { Action } from "../program.ts";
import { addRepairOptions, changesOf, type RepairOptions } from "../repair-options.ts";
import { UsageError } from "../usage-error.ts";
import { storeCommand, withStore, type StoreOptions } from "../with-store.ts";

interface Options extends RepairOptions, StoreOptions {
  readonly values?: true;
  readonly json?: true;
}

const notes = `
The handler runs in a transaction that is rolled back whatever it does; what it does outside of its transaction is as real
as ever. Give what a repair would be given to try the repair.

Examples:
  $ inbox quarantine dry-run 17 handler.ts
  $ inbox quarantine dry-run 17 handler.ts --payload fixed.json --values

Exit codes: 0 it would be applied, 1 failed, 2 wrong usage, 3 it would not be applied.`;

/** `inbox quarantine dry-run`: tries a handler on an entry and shows what it would do. */
export function quarantineDryRunCommand(io: Io, ended: Action): Command {
  return addRepairOptions(storeCommand("dry-run"))
    .description(
      "try a handler on an entry, in a transaction that is rolled back, and show its statements and effects",
    )
    .argument("<id>", "the entry's id, from: inbox quarantine list")
    .argument("<handler>", "a JavaScript or TypeScript module")
    .option("--values", "show the statements' values as they are, not their kinds and lengths")
    .addOption(jsonOption())
    .addHelpText("after", notesOf(notes))
    .action(async (id: string, handlerPath: string, options: Options) => {
      const changes = await changesOf(options);
      const loaded = await loadHandler(handlerPath);
      await withStore(
        io,
        options,
        async ({ store, quarantine }) => {
          const entry = await quarantine.entry(id);
          if (entry === undefined) throw entryMissing(id);
          const { consumer } = entry;
          const named = loaded.options.consumer;
          if (named !== undefined && named !== consumer) {
            throw new UsageError(`Entry ${entry.id} is of ${consumer}, and the handler is of ${named}.`);
          }
          const inbox = createInbox({ ...loaded.options, store, consumer, lanes: 1 });
          const message = repairedMessage(entry, changes);
          const result = await inbox.dryRun(message, loaded.handler, { values: options.values });
          io.print(options.json ? JSON.stringify({ id, ...result }) : linesOf(result).join("\n"));
          ended(result.answer.kind === "done" ? exitCodes.fine : exitCodes.foundSomething);
        },
        2,
      );
    });
}

const linesOf = ({ statements, effects, answer }: DryRun): readonly string[] => [
  ...statements.flatMap(({ text, values, command, rowCount, error }, index) => [
    `${index + 1}. ${printable(text.replace(/\s+/g, " ").trim())}`,
    ...values.map((value, at) => `   $${at + 1} ${printable(value)}`),
    `   ${printable(error === undefined ? `${command ?? "no answer"} ${rowCount ?? ""}`.trimEnd() : `failed: ${error}`)}`,
  ]),
  ...effects.map(({ destination, id, key, payload }) =>
    printable(`to ${destination}: ${id}${key === undefined ? "" : `, key ${key}`}, ${payload}`),
  ),
  printable(answerLine(answer)),
];

function answerLine(answer: DryRunAnswer): string {
  switch (answer.kind) {
    case "done":
      return "It would be applied. Nothing was.";
    case "retry-in":
      return `It would be put off for ${answer.afterMs} ms.`;
    case "quarantine":
      return `The handler would reject it: ${answer.reason}`;
    case "failed":
      return `It would fail (${[answer.class, answer.code].filter((part) => part !== "").join(", ")}): ${answer.error}`;
  }
}

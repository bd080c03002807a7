import { createReadStream } from "node:fs";
import { access, constants } from "node:fs/promises";
import type { Command } from "commander";
import type { ImportSummary } from "../../quarantine/import-entries.ts";
import { exitCodes } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { notesOf } from "../notes.ts";
import { jsonOption } from "../options.ts";
import type { Action } from "../program.ts";
import { counted } from "../table.ts";
import { UsageError } from "../usage-error.ts";
import { storeCommand, withStore, type StoreOptions } from "../with-store.ts";

interface Options extends StoreOptions {
  readonly dryRun?: true;
  readonly json?: true;
}

const notes = `
Importing the same file again imports nothing twice. A file is checked to its end before its first line is imported; from
stdin, the lines before a refused one are imported.

Examples:
  $ inbox quarantine import quarantine.ndjson --dry-run
  $ inbox quarantine import quarantine.ndjson`;

/** `inbox quarantine import`: takes an export in. */
export function quarantineImportCommand(io: Io, ended: Action): Command {
  return storeCommand("import")
    .description("take the open entries of an export in, each once")
    .argument("<file>", "what inbox quarantine export wrote; - is stdin")
    .option("--dry-run", "only check every line")
    .addOption(jsonOption())
    .addHelpText("after", notesOf(notes))
    .action(async (file: string, options: Options) => {
      const fromStdin = file === "-";
      if (!fromStdin) {
        await access(file, constants.R_OK).catch((error: unknown) => {
          throw new UsageError(`${file} cannot be read: ${(error as Error).message}`);
        });
      }
      const open = (): AsyncIterable<Uint8Array> => (fromStdin ? process.stdin : createReadStream(file));
      await withStore(io, options, async ({ quarantine }) => {
        let summary: ImportSummary | undefined;
        if (options.dryRun || !fromStdin) summary = await quarantine.import(open(), { check: true });
        if (!options.dryRun) summary = await quarantine.import(open());
        if (summary === undefined) return;
        if (options.json) io.print(JSON.stringify(summary));
        io.say(options.dryRun ? checkedLine(summary) : importedLine(summary));
        ended(exitCodes.fine);
      });
    });
}

const checkedLine = ({ lines, decided }: ImportSummary): string =>
  `${counted(lines, "line is", "lines are")} in order; ${decided} were decided on and would not be imported.`;

const importedLine = ({ imported, known, applied, decided }: ImportSummary): string =>
  `${counted(imported, "entry", "entries")} imported; ${known} were here already, ` +
  `${applied} are applied, ${decided} were decided on where they come from.`;

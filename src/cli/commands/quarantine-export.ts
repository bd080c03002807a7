import { Option, type Command } from "commander";
import type { ExportedBodies } from "../../quarantine/export-entries.ts";
import { exitCodes } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { notesOf } from "../notes.ts";
import type { Action } from "../program.ts";
import { addFilter, filterOf, statusOption, type FilterOptions } from "../quarantine-filter.ts";
import { counted } from "../table.ts";
import { storeCommand, withStore, type StoreOptions } from "../with-store.ts";

interface Options extends FilterOptions, StoreOptions {
  readonly bodies: ExportedBodies;
}

const notes = `
One JSON object a line, oldest first, bodies in base64. What is sealed stays sealed unless --bodies says otherwise.

Examples:
  $ inbox quarantine export > quarantine.ndjson
  $ inbox quarantine export --bodies redacted --group 0f3a5c7e9b1d2f4a > for-the-shop.ndjson`;

/** `inbox quarantine export`: entries as lines of JSON. */
export function quarantineExportCommand(io: Io, ended: Action): Command {
  return addFilter(storeCommand("export"))
    .description("write entries to stdout, one JSON object a line")
    .addOption(statusOption())
    .addOption(
      new Option(
        "--bodies <how>",
        "stored: as they lie there; open: as they came; redacted: as people may see them, not to be imported",
      )
        .choices(["stored", "open", "redacted"])
        .default("stored"),
    )
    .addHelpText("after", notesOf(notes))
    .action((options: Options) =>
      withStore(io, options, async ({ quarantine }) => {
        let entries = 0;
        for await (const line of quarantine.export(filterOf(options), options.bodies)) {
          if (line === "") continue;
          await io.write(line);
          entries++;
        }
        io.say(`${counted(entries, "entry", "entries")} exported.`);
        ended(exitCodes.fine);
      }),
    );
}

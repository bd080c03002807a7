import { Command } from "commander";
import { listReplays } from "../../replay/retire.ts";
import { openDatabase } from "../database.ts";
import { exitCodes } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { jsonOption, schemaOption, wholeNumber } from "../options.ts";
import type { Action } from "../program.ts";
import { replayTable } from "../replay-output.ts";
import { counted } from "../table.ts";

interface Options {
  readonly consumer?: string;
  readonly limit: number;
  readonly schema: string;
  readonly json?: true;
}

/** `inbox replay list`: who replayed what, and why. */
export function replayListCommand(io: Io, ended: Action): Command {
  return new Command("list")
    .description("list runs of replays, newest first: who asked for them, why, and what came of it")
    .option("--consumer <name>", "of this name alone: view, balances@3, accounting#rounding-2030")
    .option("--limit <n>", "at most so many", wholeNumber(1, 10_000), 100)
    .addOption(schemaOption())
    .addOption(jsonOption())
    .action(async ({ consumer, limit, schema, json }: Options) => {
      const database = await openDatabase(io, { local: "existing", maxConnections: 1 });
      try {
        const rows = await listReplays(database.pool, { consumer, limit, schema });
        if (json) for (const row of rows) io.print(JSON.stringify(row));
        else if (rows.length > 0) io.print(replayTable(rows));
        io.say(`${counted(rows.length, "run", "runs")}.`);
        ended(exitCodes.fine);
      } finally {
        await database.close();
      }
    });
}

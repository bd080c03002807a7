import { Command } from "commander";
import { driverFor } from "../../store/postgres/drivers/detect.ts";
import { migrateSchema, printMigrations } from "../../store/postgres/migrate.ts";
import { openDatabase } from "../database.ts";
import { exitCodes } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { jsonOption, schemaOption } from "../options.ts";
import type { Action } from "../program.ts";

interface Options {
  readonly schema: string;
  readonly print?: true;
  readonly json?: true;
}

/** `inbox migrate`: brings the inbox's tables to this release's version. */
export function migrateCommand(io: Io, ended: Action): Command {
  return new Command("migrate")
    .description(
      "create the inbox's tables, or bring them to this release's version; any number may run at once",
    )
    .addOption(schemaOption())
    .option("--print", "print the SQL instead of running it; needs no database")
    .addOption(jsonOption())
    .action(async ({ schema, print, json }: Options) => {
      if (print) {
        io.print(printMigrations({ schema }).trimEnd());
        return ended(exitCodes.fine);
      }
      const database = await openDatabase(io, { local: "existing", maxConnections: 1 });
      try {
        const result = await migrateSchema(driverFor(database.pool), { schema });
        if (json) io.print(JSON.stringify({ schema, ...result }));
        io.say(
          result.applied.length === 0
            ? `Schema "${schema}" on ${database.description} is at version ${result.to} already.`
            : `Schema "${schema}" on ${database.description}: version ${result.from} to ${result.to} (${result.applied.join(", ")}).`,
        );
        ended(exitCodes.fine);
      } finally {
        await database.close();
      }
    });
}

import type { Command } from "commander";
import type { BulkDecision } from "../../store/quarantine-store.ts";
import { exitCodes } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { jsonOption, wholeNumber } from "../options.ts";
import type { Action } from "../program.ts";
import { cell, tableOf } from "../table.ts";
import { storeCommand, withStore, type StoreOptions } from "../with-store.ts";

interface Options extends StoreOptions {
  readonly limit: number;
  readonly json?: true;
}

/** `inbox quarantine decisions`: who decided what, when and why. */
export function quarantineDecisionsCommand(io: Io, ended: Action): Command {
  return storeCommand("decisions")
    .description("list decisions, newest first: who, when, why, on what; with --json one object a line")
    .option("--limit <n>", "at most so many", wholeNumber(1, 1_000), 100)
    .addOption(jsonOption())
    .action((options: Options) =>
      withStore(io, options, async ({ quarantine }) => {
        const decisions = await quarantine.decisions(options.limit);
        if (options.json) for (const decision of decisions) io.print(JSON.stringify(decision));
        else if (decisions.length > 0) io.print(decisionTable(decisions));
        else io.say("Nobody has decided on anything yet.");
        ended(exitCodes.fine);
      }),
    );
}

/** Who decided what, one line a decision. */
export const decisionTable = (decisions: readonly BulkDecision[]): string =>
  tableOf(
    ["id", "kind", "at", "by", "entries", "left", "on", "why"],
    decisions.map((decision) => [
      decision.id,
      decision.kind,
      decision.at.toISOString(),
      cell(decision.by),
      String(decision.decided),
      decision.finishedAt === undefined ? String(decision.matched - decision.decided) : "0",
      cell(decision.filter, 60),
      cell(decision.why, 60),
    ]),
  );

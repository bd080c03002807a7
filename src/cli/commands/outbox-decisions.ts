import type { Command } from "commander";
import { exitCodes } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { jsonOption, wholeNumber } from "../options.ts";
import type { Action } from "../program.ts";
import { storeCommand, withStore, type StoreOptions } from "../with-store.ts";
import { decisionTable } from "./quarantine-decisions.ts";

interface Options extends StoreOptions {
  readonly limit: number;
  readonly json?: true;
}

/** `inbox outbox decisions`: who decided what on refused effects, when and why. */
export function outboxDecisionsCommand(io: Io, ended: Action): Command {
  return storeCommand("decisions")
    .description(
      "list decisions on effects, newest first: who, when, why, on what; with --json one object a line",
    )
    .option("--limit <n>", "at most so many", wholeNumber(1, 1_000), 100)
    .addOption(jsonOption())
    .action((options: Options) =>
      withStore(io, options, async ({ outbox }) => {
        const decisions = await outbox.decisions(options.limit);
        if (options.json) for (const decision of decisions) io.print(JSON.stringify(decision));
        else if (decisions.length > 0) io.print(decisionTable(decisions));
        else io.say("Nobody has decided on anything yet.");
        ended(exitCodes.fine);
      }),
    );
}

import type { Command } from "commander";
import { carryOutDecision } from "../carry-out.ts";
import { exitCodes, type ExitCode } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { jsonOption } from "../options.ts";
import type { Action } from "../program.ts";
import { storeCommand, withStore, type StoreOptions } from "../with-store.ts";

interface Options extends StoreOptions {
  readonly json?: true;
}

/** `inbox quarantine resume`: carries on decisions on many that were ended on the way. */
export function quarantineResumeCommand(io: Io, ended: Action): Command {
  return storeCommand("resume")
    .description("carry on decisions on many entries whose command was ended on the way")
    .argument("[decision]", "the decision's number (default: all that have entries left)")
    .addOption(jsonOption())
    .action((id: string | undefined, options: Options) =>
      withStore(io, options, async ({ quarantine }) => {
        const left = await quarantine.unfinished();
        const chosen = id === undefined ? left : left.filter((decision) => decision.id === id);
        if (chosen.length === 0) io.say("There is no such decision with entries left.");
        let code: ExitCode = id !== undefined && chosen.length === 0 ? exitCodes.failed : exitCodes.fine;
        for (const decision of chosen) {
          const one = await carryOutDecision(io, quarantine, decision, options.json === true);
          if (one !== exitCodes.fine) code = one;
        }
        ended(code);
      }),
    );
}

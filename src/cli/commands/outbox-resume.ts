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

/** `inbox outbox resume`: carries on decisions on many that were ended on the way. */
export function outboxResumeCommand(io: Io, ended: Action): Command {
  return storeCommand("resume")
    .description("carry on decisions on many effects whose command was ended on the way")
    .argument("[decision]", "the decision's number (default: all that have effects left)")
    .addOption(jsonOption())
    .action((id: string | undefined, options: Options) =>
      withStore(io, options, async ({ outbox }) => {
        const left = await outbox.unfinished();
        const chosen = id === undefined ? left : left.filter((decision) => decision.id === id);
        if (chosen.length === 0) io.say("There is no such decision with effects left.");
        let code: ExitCode = id !== undefined && chosen.length === 0 ? exitCodes.failed : exitCodes.fine;
        for (const decision of chosen) {
          const one = await carryOutDecision(io, outbox, decision, options.json === true, "outbox");
          if (one !== exitCodes.fine) code = one;
        }
        ended(code);
      }),
    );
}

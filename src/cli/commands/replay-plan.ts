import { Command } from "commander";
import { planReplay, type ReplayPlan } from "../../replay/plan.ts";
import type { ReplayPolicy } from "../../replay/policy.ts";
import { loadConfig } from "../config.ts";
import { openDatabase } from "../database.ts";
import { exitCodes } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { notesOf } from "../notes.ts";
import { jsonOption, schemaOption } from "../options.ts";
import type { Action } from "../program.ts";
import { planLines, policyTable } from "../replay-output.ts";
import { addReplayFlags, openReplaySource, policyOf, type ReplayFlags } from "../replay-options.ts";
import { UsageError } from "../usage-error.ts";
import { configOption, type StoreOptions } from "../with-store.ts";

interface Options extends ReplayFlags, StoreOptions {
  readonly json?: true;
}

const notes = `
Reads the source and the ledger, and writes nothing. Without a policy it tells what each of them would run.

Examples:
  $ inbox replay plan --of accounting --source payments.ndjson --id-path id --producer shop
  $ inbox replay plan --of accounting --compensate rounding-2030 --applied-by 2 --source payments.ndjson
  $ inbox replay plan --projection balances@3 --stored archive

Exit codes: 0 fine, 1 failed, 2 wrong usage.`;

/** `inbox replay plan`: what a replay would do. */
export function replayPlanCommand(io: Io, ended: Action): Command {
  return addReplayFlags(new Command("plan"))
    .description("tell what a replay would run, what is applied already, and what has no body")
    .addOption(schemaOption())
    .addOption(configOption())
    .addOption(jsonOption())
    .addHelpText("after", notesOf(notes))
    .action(async (options: Options) => {
      const policy = policyOf(options);
      const policies = policy === undefined ? eachPolicy(options.of) : [policy];
      const { payloadKeys } = await loadConfig(io, options.config);
      const database = await openDatabase(io, { local: "existing", maxConnections: 17 });
      try {
        const plans: ReplayPlan[] = [];
        for (const one of policies) {
          const { schema } = options;
          const onWarning = (text: string): void => io.say(text);
          const { source, close } = await openReplaySource(io, options, database.pool, payloadKeys);
          try {
            plans.push(await planReplay(database.pool, { policy: one, source, schema, onWarning }));
          } finally {
            await close();
          }
        }
        if (options.json) for (const plan of plans) io.print(JSON.stringify(plan));
        else if (policy === undefined) io.print(policyTable(plans));
        else io.print(planLines(plans[0]!).join("\n"));
        ended(exitCodes.fine);
      } finally {
        await database.close();
      }
    });
}

/** Under names that nobody has, so that what each policy leaves out is all that is between them. */
function eachPolicy(of: string | undefined): readonly ReplayPolicy[] {
  if (of === undefined)
    throw new UsageError("Give --of, and a policy to plan one: --rebuild-as, --projection or --compensate.");
  return [
    { kind: "rebuild", of, consumer: `${of}-rebuilt`.slice(-128) },
    { kind: "projection", name: of, version: 2_147_483_647, of },
    { kind: "compensate", of, migration: "a-migration" },
  ];
}

import { Command } from "commander";
import { printable } from "../../message/show-value.ts";
import { planReplay } from "../../replay/plan.ts";
import type { ReplayPolicy } from "../../replay/policy.ts";
import { replay, type Replay, type ReplayReport } from "../../replay/replay-run.ts";
import type { ReplaySource } from "../../replay/replay-source.ts";
import { telemetry } from "../../telemetry/channels.ts";
import { loadConfig } from "../config.ts";
import { openDatabase, type Database } from "../database.ts";
import { addDeciderOptions, deciderOf, type DeciderOptions } from "../decider-options.ts";
import { exitCodes, type ExitCode } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { loadHandler } from "../load-handler.ts";
import { notesOf } from "../notes.ts";
import { jsonOption, schemaOption, wholeNumber } from "../options.ts";
import type { Action } from "../program.ts";
import { countsLine, planLines } from "../replay-output.ts";
import { addReplayFlags, openReplaySource, policyOf, type ReplayFlags } from "../replay-options.ts";
import type { OpenedSource } from "../replay-kafka.ts";
import { onStopSignals } from "../stop-signals.ts";
import { counted } from "../table.ts";
import { UsageError } from "../usage-error.ts";
import { configOption, type StoreOptions } from "../with-store.ts";

interface Options extends ReplayFlags, StoreOptions, DeciderOptions {
  readonly rate: number;
  readonly atMost?: number;
  readonly handlerVersion?: string;
  readonly lanes?: number;
  readonly resume: boolean;
  readonly json?: true;
}

const defaultLanes = 4;

const notes = `
Messages are taken under a name of their own, never the original's: what the original has applied stays as it is, and
each message is applied once under that name, however often the replay is killed and run again, and whoever runs it.
A run after one that did not come to its end goes on where that one was.

The handler's module is as for "inbox run". Its handler is the read model's, the projection's, or the correction's.

Examples:
  $ inbox replay run view.ts --of accounting --rebuild-as accounting-view --source payments.ndjson
  $ inbox replay run balances.ts --projection balances@3 --stored archive --rate 200
  $ inbox replay run fix.ts --of accounting --compensate rounding-2030 --applied-by 2 --source payments.ndjson \\
      --at-most 1200 --by ann --why "version 2 rounded down"

Exit codes: 0 all applied or duplicates, 1 failed or refused, 2 wrong usage, 3 something is in quarantine or waits, 130 stopped at once.`;

/** `inbox replay run`: handles messages again, by a policy. */
export function replayRunCommand(io: Io, ended: Action): Command {
  return addDeciderOptions(addReplayFlags(new Command("run")))
    .description("handle messages again under a policy, at a bounded rate")
    .argument("<handler>", "a JavaScript or TypeScript module")
    .option("--rate <n>", "messages a second at most", wholeNumber(1, 1_000_000), 1_000)
    .option("--at-most <n>", "confirms how many may run, from the plan", wholeNumber(0, 1e12))
    .option("--handler-version <text>", "written beside what this handler applied")
    .option("--lanes <n>", `transactions side by side (default: ${defaultLanes})`, wholeNumber(1, 64))
    .option("--no-resume", "begin at the source's beginning; what was applied before is found as a duplicate")
    .addOption(schemaOption())
    .addOption(configOption())
    .addOption(jsonOption())
    .addHelpText("after", notesOf(notes))
    .action(async (handlerPath: string, options: Options) => {
      const policy = policyOf(options);
      if (policy === undefined)
        throw new UsageError("A replay needs a policy: --rebuild-as, --projection or --compensate.");
      const loaded = await loadHandler(handlerPath);
      const { payloadKeys } = await loadConfig(io, options.config);
      const lanes = options.lanes ?? loaded.options.lanes ?? defaultLanes;
      let opened: OpenedSource | undefined;
      const database = await openDatabase(io, { local: "existing", maxConnections: lanes + 5 });
      try {
        opened = await openReplaySource(io, options, database.pool, payloadKeys);
        const { source } = opened;
        await confirmed(io, database, policy, source, options);
        const decider = await deciderOf(io, options);
        await loaded.prepare?.(database.pool);
        // The name is the policy's, whatever the module says of the consumer it was written for.
        const { consumer: _, ...inbox } = loaded.options;
        const running = replay(database.pool, {
          ...{ policy, source, handler: loaded.handler, ...decider, schema: options.schema, payloadKeys },
          messagesPerSecond: options.rate,
          fromStart: !options.resume,
          inbox: {
            ...inbox,
            lanes,
            ...(options.handlerVersion === undefined ? {} : { handlerVersion: options.handlerVersion }),
          },
        });
        ended(await toItsEnd(io, running, options.json === true));
      } finally {
        await opened?.close();
        await database.close();
      }
    });
}

/** Reads the plan and has its number confirmed, which nobody types without having read it. */
async function confirmed(
  io: Io,
  { pool }: Database,
  policy: ReplayPolicy,
  source: ReplaySource,
  { schema, atMost }: Options,
): Promise<void> {
  const plan = await planReplay(pool, { policy, source, schema, onWarning: (text) => io.say(text) });
  const would = `${counted(plan.wouldRun, "message", "messages")} would run under ${printable(plan.consumer)}`;
  if (atMost !== undefined) {
    if (plan.wouldRun <= atMost) return;
    throw new UsageError(`${would}, more than --at-most ${atMost}. Nothing was run.`);
  }
  for (const line of planLines(plan)) io.say(line);
  const answer = await io.ask(`${would}. Type the number to run them: `);
  if (answer === undefined) throw new UsageError(`${would}. Confirm with --at-most ${plan.wouldRun}.`);
  if (answer.trim() !== String(plan.wouldRun)) throw new UsageError("Nothing was run.");
}

async function toItsEnd(io: Io, running: Replay, json: boolean): Promise<ExitCode> {
  const onWarning = (event: unknown): void => io.say(`warning: ${(event as { message: string }).message}`);
  telemetry.warning.subscribe(onWarning);
  const signals = onStopSignals(() => {
    io.say("Stopping: finishing what is being handled. Once more stops at once.");
    void running.stop().catch(() => undefined);
  });
  const timer = io.terminal ? setInterval(() => io.status(countsLine(running.counts())), 200) : undefined;
  let report: ReplayReport;
  try {
    report = await running.finished;
  } finally {
    clearInterval(timer);
    io.status("");
    signals.cancel();
    telemetry.warning.unsubscribe(onWarning);
  }
  const { counts, ended } = report;
  if (json) io.print(JSON.stringify(report));
  io.say(`${ended === "done" ? "Done" : "Stopped"}: ${countsLine(counts)}.`);
  if (ended === "stopped") io.say("The next run of the same goes on where this one stopped.");
  const { rejected, conflicts, late, stored } = counts;
  const left = rejected + conflicts + late + stored > 0;
  if (left)
    io.say(`See: inbox quarantine list --consumer ${printable(report.consumer)}, and inbox pending list`);
  return left ? exitCodes.foundSomething : exitCodes.fine;
}

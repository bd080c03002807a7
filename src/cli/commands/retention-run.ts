import { InvalidArgumentError, type Command } from "commander";
import { parseDuration, showDuration } from "../../retention/duration.ts";
import { createCleanup, type Cleanup } from "../../retention/cleanup.ts";
import type { Sweep } from "../../retention/sweep.ts";
import { telemetry } from "../../telemetry/channels.ts";
import { exitCodes } from "../exit-codes.ts";
import { healthAddress, serveHealth, type HealthAddress } from "../health-server.ts";
import type { Io } from "../io.ts";
import { notesOf } from "../notes.ts";
import { jsonOption, wholeNumber } from "../options.ts";
import type { Action } from "../program.ts";
import { whyKept } from "../retention-status-output.ts";
import { onStopSignals } from "../stop-signals.ts";
import { cell, counted } from "../table.ts";
import { storeCommand, withStore, type StoreOptions } from "../with-store.ts";

interface Options extends StoreOptions {
  readonly once?: true;
  readonly every: number;
  readonly skew: number;
  readonly duty: number;
  readonly health?: HealthAddress;
  readonly json?: true;
}

const notes = `
Only consumers with a window forget anything (inbox retention window, or windowMs of the inbox), and only while every
source of theirs makes progress (inbox retention status). Any number of processes may run this: one works at a time,
and another one takes over where it dies. Ctrl-C ends it after the batch that runs.

Examples:
  $ inbox retention run                      beside your services, for as long as it lives
  $ inbox retention run --once               from cron
  $ inbox retention run --once --duty 50     faster, where intake can spare it
  $ inbox retention run --health 8080        health as JSON: 200, or 503 while it is behind or fails

Exit codes: 0 fine, 1 failed, 2 wrong usage, 3 with --once: something is kept that is older than its window.`;

/** `inbox retention run`: forgets what is older than its window. */
export function retentionRunCommand(io: Io, ended: Action): Command {
  return storeCommand("run")
    .description("forget identities that are older than their window, in small batches")
    .option("--once", "one sweep, then end")
    .option("--every <duration>", "how often the ledger is swept (default: 10m)", durationOf, 600_000)
    .option(
      "--skew <duration>",
      "how far clocks of producers may run ahead (default: 1h)",
      durationOf,
      3_600_000,
    )
    .option("--duty <percent>", "how much of the time is spent on batches", wholeNumber(1, 100), 10)
    .option("--health <address>", "tell health by HTTP at this port, or host:port", healthAddress)
    .addOption(jsonOption())
    .addHelpText("after", notesOf(notes))
    .action((options: Options) =>
      withStore(io, options, async ({ store }) => {
        const tell = (swept: Sweep): void => {
          if (options.json) io.print(JSON.stringify(swept));
          for (const line of sweepLines(swept)) io.say(line);
        };
        const cleanup = createCleanup({
          ...{ store, everyMs: options.every, skewMs: options.skew, dutyPercent: options.duty },
          onSweep: tell,
        });
        const stop = new AbortController();
        const stopped = new Promise<void>((resolve) =>
          stop.signal.addEventListener("abort", () => resolve()),
        );
        const signals = onStopSignals(() => stop.abort());
        const health = options.health && (await serveHealth(options.health, () => healthOf(cleanup)));
        if (health !== undefined) io.say(`Health at ${health.address.host} port ${health.address.port}.`);
        const warn = (event: unknown): void => io.say((event as { message: string }).message);
        telemetry.warning.subscribe(warn);
        try {
          if (options.once) {
            const swept = await cleanup.once({ signal: stop.signal });
            if (swept.ended === "busy") tell(swept);
            const kept = swept.consumers.some((one) => one.waitsFor.length > 0 || noSource(one));
            ended(kept ? exitCodes.foundSomething : exitCodes.fine);
          } else {
            await cleanup.start();
            io.say(`Forgetting every ${showDuration(options.every)}. Ctrl-C ends it.`);
            await stopped;
            await cleanup.stop();
            ended(exitCodes.fine);
          }
        } finally {
          telemetry.warning.unsubscribe(warn);
          signals.cancel();
          await health?.close();
        }
      }),
    );
}

function healthOf(cleanup: Cleanup): { readonly well: boolean; readonly body: unknown } {
  const health = cleanup.health();
  return { well: health.status === "ok" || health.status === "idle", body: health };
}

const noSource = ({ windowMs, sources }: Sweep["consumers"][number]): boolean =>
  windowMs !== undefined && sources === 0;

function sweepLines({
  ended,
  identities,
  batches,
  gaveWay,
  durationMs,
  consumers,
}: Sweep): readonly string[] {
  if (ended === "busy") return ["Another process is forgetting now; this one leaves it alone."];
  const gave =
    gaveWay === 0 ? "" : `, ${counted(gaveWay, "of them gave", "of them gave")} way to others' locks`;
  const how =
    ended === "done" ? "" : ended === "lost" ? " Another process took over." : " Stopped before the end.";
  const took = `${(durationMs / 1_000).toFixed(1)} s`;
  return [
    `${counted(identities, "identity", "identities")} forgotten in ${counted(batches, "batch", "batches")}${gave}, ${took}.${how}`,
    ...consumers.flatMap((one) => {
      const why = whyKept(one);
      if (why === undefined || one.windowMs === undefined) return [];
      return [`Nothing of ${cell(one.consumer)} is forgotten: ${why}.`];
    }),
    ...(consumers.length === 0 ? ["No consumer has a window: nothing is ever forgotten."] : []),
  ];
}

function durationOf(text: string): number {
  const ms = parseDuration(text);
  if (ms === undefined)
    throw new InvalidArgumentError("It must be a duration, such as 90s, 36h, 7d or 1d12h.");
  return ms;
}

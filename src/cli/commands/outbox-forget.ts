import type { Command } from "commander";
import { setTimeout as sleep } from "node:timers/promises";
import { forgetEffects, type ForgottenEffects } from "../../outbox/forget.ts";
import { duration } from "../duration.ts";
import { exitCodes, type ExitCode } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { notesOf } from "../notes.ts";
import { jsonOption } from "../options.ts";
import type { Action } from "../program.ts";
import { onStopSignals } from "../stop-signals.ts";
import { counted } from "../table.ts";
import { storeCommand, withStore, type StoreOptions } from "../with-store.ts";

interface Options extends StoreOptions {
  readonly olderThan: number;
  readonly bodiesOlderThan?: number;
  readonly every?: number;
  readonly json?: true;
}

const notes = `
Forgotten are effects that are settled, and in whose life nothing has happened for so long: their ids, attempts, answers
and decided refusals. What waits, for its destination or for a person, never is. An id that is forgotten is a new effect
when it is asked for again: choose at least the window of your inboxes, and how far back you replay.

Examples:
  $ inbox outbox forget --older-than 90d
  $ inbox outbox forget --older-than 90d --bodies-older-than 30d --every 1h

Exit codes: 0 fine, 1 failed, 2 wrong usage, 3 another process is at it.`;

/** `inbox outbox forget`: forgets effects that are settled and old. */
export function outboxForgetCommand(io: Io, ended: Action): Command {
  return storeCommand("forget")
    .description("forget effects that are settled and old, in batches, one process at a time")
    .requiredOption("--older-than <age>", "how long effects stay known, such as 90d", duration)
    .option(
      "--bodies-older-than <age>",
      "how long bodies of decided refusals stay (default: as long)",
      duration,
    )
    .option("--every <span>", "again and again, with so long between, until it is stopped", duration)
    .addOption(jsonOption())
    .addHelpText("after", notesOf(notes))
    .action((options: Options) =>
      withStore(io, options, async ({ store }) => {
        const stop = new AbortController();
        const signals = onStopSignals(() => stop.abort());
        const { olderThan: windowMs, bodiesOlderThan: bodyWindowMs, every } = options;
        try {
          for (;;) {
            const swept = await forgetEffects({ store, windowMs, bodyWindowMs, signal: stop.signal });
            tell(io, swept, options.json === true);
            if (every === undefined) return ended(codeOf(swept));
            await sleep(every, undefined, { signal: stop.signal }).catch(() => undefined);
            if (stop.signal.aborted) return ended(exitCodes.fine);
          }
        } finally {
          signals.cancel();
        }
      }),
    );
}

function tell(io: Io, swept: ForgottenEffects, json: boolean): void {
  if (json) io.print(JSON.stringify(swept));
  const { ended, effects, bodies } = swept;
  if (ended === "busy") return io.say("Another process is at it.");
  const stopped =
    ended === "done" ? "" : ` It was ${ended === "lost" ? "taken over" : "stopped"} before the end.`;
  io.say(
    `${counted(effects, "effect", "effects")} forgotten, and ${counted(bodies, "body", "bodies")} of refusals.${stopped}`,
  );
}

const codeOf = ({ ended }: ForgottenEffects): ExitCode =>
  ended === "busy" ? exitCodes.foundSomething : exitCodes.fine;

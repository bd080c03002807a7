import type { Outcome } from "../inbox/outcome.ts";
import type { Run } from "../inbox/run.ts";
import type { Message } from "../message/message.ts";
import { showValue } from "../message/show-value.ts";
import { telemetry } from "../telemetry/channels.ts";
import type { Io } from "./io.ts";
import type { RunSource } from "./run-source.ts";
import { summaryLine, summaryOf } from "./run-summary.ts";

/** Tells a person what happens during a run, until it is stopped. */
export interface RunTalk {
  stop(): void;
}

/** So many messages that went wrong are named; quarantine has them all. */
const namedProblems = 5;
const refreshMs = 200;

/** Begins to tell: warnings, the first messages that went wrong, and on a terminal a line with counts and rate. */
export function startRunTalk(io: Io, run: Run, source: Pick<RunSource, "progress">): RunTalk {
  let problems = 0;
  const onOutcome = (event: unknown): void => {
    const { message, outcome, error } = event as { message?: Message; outcome: Outcome; error?: Error };
    if (error === undefined || outcome === "busy") return;
    problems += 1;
    if (problems <= namedProblems) {
      const who = message === undefined ? "a message" : `message ${showValue(message.id)}`;
      io.say(`${who}: ${outcome}: ${showValue(error.message, 300)}`);
    }
    if (problems === namedProblems)
      io.say("Further problems are counted, not named. See: inbox quarantine list");
  };
  const onWarning = (event: unknown): void => io.say(`warning: ${(event as { message: string }).message}`);
  const onStore = (event: unknown): void => {
    const { state } = event as { state: "away" | "back" };
    io.say(state === "away" ? "The database does not answer: waiting for it." : "The database is back.");
  };
  telemetry.outcome.subscribe(onOutcome);
  telemetry.warning.subscribe(onWarning);
  telemetry.store.subscribe(onStore);

  const show = (): void => {
    const { done } = source.progress();
    const percent = done === undefined ? "" : ` (${Math.floor(100 * done)}%)`;
    io.status(`${summaryLine(summaryOf(run.stats()))}${percent}`);
  };
  const timer = io.terminal ? setInterval(show, refreshMs) : undefined;
  return {
    stop() {
      clearInterval(timer);
      io.status("");
      telemetry.outcome.unsubscribe(onOutcome);
      telemetry.warning.unsubscribe(onWarning);
      telemetry.store.unsubscribe(onStore);
    },
  };
}

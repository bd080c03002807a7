import { printable } from "../message/show-value.ts";
import type { Quarantine } from "../quarantine/quarantine.ts";
import type { BulkDecision } from "../store/quarantine-store.ts";
import { exitCodes, type ExitCode } from "./exit-codes.ts";
import type { Io } from "./io.ts";
import { onStopSignals } from "./stop-signals.ts";
import { counted } from "./table.ts";

/** Carries a recorded decision out, batch by batch, and tells how it went. The first Ctrl-C stops between two batches. */
export async function carryOutDecision(
  io: Io,
  desk: Pick<Quarantine, "carryOn">,
  recorded: BulkDecision,
  json: boolean,
  noun: "quarantine" | "outbox" = "quarantine",
): Promise<ExitCode> {
  const stop = new AbortController();
  const signals = onStopSignals(() => stop.abort());
  let decision: BulkDecision;
  try {
    decision = await desk.carryOn(recorded.id, {
      signal: stop.signal,
      onBatch: ({ matched, decided }) => io.status(`${decided} of ${matched}`),
    });
  } finally {
    signals.cancel();
    io.status("");
  }
  if (json) io.print(JSON.stringify(decision));
  const { id, kind, matched, decided, skipped, by, why } = decision;
  io.say(
    `Decision ${id}: ${kind} of ${counted(decided, "entry", "entries")}, by ${printable(by)}: ${printable(why)}.`,
  );
  if (skipped > 0) {
    io.say(
      `${counted(skipped, "entry was", "entries were")} left: decided on otherwise meanwhile, or not to be retried.`,
    );
  }
  if (decision.finishedAt === undefined) {
    io.say(`${matched - decided - skipped} are not reached yet. Run: inbox ${noun} resume ${id}`);
  }
  return skipped > 0 || decision.finishedAt === undefined ? exitCodes.foundSomething : exitCodes.fine;
}

import type { Command } from "commander";
import type { DestinationStatus } from "../../store/outbox-operator.ts";
import { age } from "../age.ts";
import { exitCodes } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { notesOf } from "../notes.ts";
import { jsonOption } from "../options.ts";
import type { Action } from "../program.ts";
import { cell, counted, tableOf } from "../table.ts";
import { storeCommand, withStore, type StoreOptions } from "../with-store.ts";

interface Options extends StoreOptions {
  readonly json?: true;
}

const notes = `
Ages are by the database's clock. What relays tell of themselves (in hand, paused, last sent) is at most some seconds
old; a relay that has not been heard of for 30 seconds does not count.

Exit codes: 0 fine, 1 failed, 2 wrong usage, 3 effects were refused, or a destination has no relay or a pause.`;

/** `inbox outbox status`: one line a destination. */
export function outboxStatusCommand(io: Io, ended: Action): Command {
  return storeCommand("status")
    .description("show for each destination what waits, since when, and whether it is sent")
    .addOption(jsonOption())
    .addHelpText("after", notesOf(notes))
    .action((options: Options) =>
      withStore(io, options, async ({ outbox }) => {
        const rows = await outbox.status();
        if (options.json) for (const row of rows) io.print(JSON.stringify(row));
        else if (rows.length > 0) io.print(statusTable(rows));
        else io.say("No effect was ever asked for.");
        for (const { destination, relays, waiting } of rows) {
          if (relays === 0 && waiting > 0) {
            io.say(
              `${cell(destination)}: no relay sends there. Run: inbox relay --config MODULE, with this name.`,
            );
          }
        }
        for (const { id, kind, by, matched, decided, skipped } of await outbox.unfinished()) {
          const left = counted(matched - decided - skipped, "effect", "effects");
          io.say(`Decision ${id} (${kind} by ${cell(by)}) has ${left} left. Run: inbox outbox resume ${id}`);
        }
        ended(rows.some(needsAPerson) ? exitCodes.foundSomething : exitCodes.fine);
      }),
    );
}

const needsAPerson = ({ refused, waiting, relays, paused }: DestinationStatus): boolean =>
  refused > 0 || paused > 0 || (waiting > 0 && relays === 0);

const statusTable = (rows: readonly DestinationStatus[]): string =>
  tableOf(
    [
      ...["destination", "state", "waiting", "due", "scheduled", "behind", "in hand", "oldest", "refused"],
      ...["oldest refused", "last sent", "last error"],
    ],
    rows.map((row) => [
      cell(row.destination),
      stateOf(row),
      ...[row.waiting, row.due, row.scheduled, row.behind, row.inHand].map(String),
      age(row.oldestMs),
      String(row.refused),
      age(row.oldestRefusedMs),
      row.lastSentMs === undefined ? "-" : `${age(row.lastSentMs)} ago`,
      cell(row.lastError, 60),
    ]),
  );

function stateOf({ relays, paused, pausedForMs }: DestinationStatus): string {
  if (relays === 0) return "no relay";
  if (paused === 0) return "open";
  return `paused${paused < relays ? ` by ${paused} of ${relays}` : ""}, ${age(pausedForMs)} left`;
}

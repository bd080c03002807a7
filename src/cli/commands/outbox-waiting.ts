import { Option, type Command } from "commander";
import type { EffectState, WaitingEffect } from "../../store/outbox-operator.ts";
import { age } from "../age.ts";
import { exitCodes } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { jsonOption, wholeNumber } from "../options.ts";
import type { Action } from "../program.ts";
import { cell, tableOf } from "../table.ts";
import { storeCommand, withStore, type StoreOptions } from "../with-store.ts";

interface Options extends StoreOptions {
  readonly destination?: string;
  readonly state?: EffectState;
  readonly producer?: string;
  readonly tenant?: string;
  readonly effectId?: string;
  readonly key?: string;
  readonly limit: number;
  readonly after?: string;
  readonly json?: true;
}

/** `inbox outbox waiting`: one line an effect that is not sent. */
export function outboxWaitingCommand(io: Io, ended: Action): Command {
  return storeCommand("waiting")
    .description(
      "list effects that are not sent, in the order they were asked for; with --json one object a line",
    )
    .option("--destination <name>", "only to this destination")
    .addOption(
      new Option("--state <state>", "only in this state").choices([
        ...["ready", "scheduled", "behind", "quarantined", "aside"],
      ]),
    )
    .option("--producer <name>", "only from this producer")
    .option("--tenant <name>", "only of this tenant")
    .option("--effect-id <id>", "only this effect")
    .option("--key <key>", "only effects of this key")
    .option("--limit <n>", "at most so many", wholeNumber(1, 1_000), 100)
    .option("--after <position>", "effects behind this position, to read on")
    .addOption(jsonOption())
    .action((options: Options) =>
      withStore(io, options, async ({ outbox }) => {
        const { destination, state, producer, tenant, effectId, key, limit, after } = options;
        const rows = await outbox.waiting({
          ...{ destination, state, producer, tenant, effectId, key, limit, after },
        });
        if (options.json) for (const row of rows) io.print(JSON.stringify(row));
        else if (rows.length > 0) io.print(waitingTable(rows));
        if (rows.length === 0) io.say("No effect waits that fits.");
        const last = rows.at(-1);
        if (rows.length === limit && last) io.say(`There may be more: --after ${last.position}`);
        ended(exitCodes.fine);
      }),
    );
}

const waitingTable = (rows: readonly WaitingEffect[]): string =>
  tableOf(
    [
      ...["position", "state", "waits", "due", "destination", "producer", "effect id", "key", "attempts"],
      "last error",
    ],
    rows.map((row) => [
      row.position,
      row.state,
      age(row.waitedMs),
      row.dueAt?.toISOString() ?? "-",
      cell(row.destination),
      cell(row.producer),
      cell(row.effectId),
      cell(row.key),
      String(row.attempts),
      cell(row.error, 60),
    ]),
  );

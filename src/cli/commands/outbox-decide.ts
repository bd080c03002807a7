import type { Command } from "commander";
import { InboxError } from "../../errors.ts";
import { printable } from "../../message/show-value.ts";
import type { OutboxConsole } from "../../outbox/console.ts";
import type { RefusedFilter } from "../../store/outbox-operator.ts";
import { carryOutDecision } from "../carry-out.ts";
import { confirmedCount } from "../confirm-count.ts";
import { addDeciderOptions, deciderOf, type DeciderOptions } from "../decider-options.ts";
import { exitCodes, type ExitCode } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { jsonOption, wholeNumber } from "../options.ts";
import {
  addRefusedFilter,
  refusedFilterLeavesOut,
  refusedFilterOf,
  type RefusedFilterOptions,
} from "../outbox-filter.ts";
import type { Action } from "../program.ts";
import { counted } from "../table.ts";
import { UsageError } from "../usage-error.ts";
import { storeCommand, withStore, type StoreOptions } from "../with-store.ts";
import { refusedGroupTable } from "./outbox-groups.ts";
import { refusedTable } from "./outbox-list.ts";

interface Options extends RefusedFilterOptions, DeciderOptions, StoreOptions {
  readonly all?: true;
  readonly expected?: number;
  readonly dryRun?: true;
  readonly json?: true;
}

type Kind = "retry" | "discard";

const about: Readonly<Record<Kind, { readonly description: string; readonly done: string }>> = {
  retry: {
    description: "give refused effects back to be sent, as they are, under the same ids",
    done: "given back to be sent",
  },
  discard: {
    description: "decide that refused effects are not to be sent; what waits behind them goes on",
    done: "discarded",
  },
};

const notes = (kind: Kind): string => `
Refused effects are named by their entries' ids, or chosen by a filter. A decision on many is made only if as many fit as
you expect: --dry-run shows how many, --expected confirms the number. It counts at once, and is carried out in batches; a
command that is ended on the way leaves the rest to: inbox outbox resume

Examples:
  $ inbox outbox ${kind} 17 --why "the account is there now"
  $ inbox outbox ${kind} --group 0f3a5c7e9b1d2f4a --dry-run
  $ inbox outbox ${kind} --group 0f3a5c7e9b1d2f4a --expected 4000 --why "the account is there now"

Exit codes: 0 all decided, 1 refused or failed, 2 wrong usage, 3 some could not be decided on, or are left.`;

/** `inbox outbox retry` and `discard`. */
export function outboxDecideCommand(io: Io, ended: Action, kind: Kind): Command {
  const command = addRefusedFilter(storeCommand(kind))
    .description(about[kind].description)
    .argument("[ids...]", "entries, from: inbox outbox list")
    .option("--all", "all that are refused and not decided on")
    .option("--expected <n>", "how many fit the filter", wholeNumber(0, 2_147_483_647))
    .option("--dry-run", "show what would be decided, and decide nothing");
  return addDeciderOptions(command)
    .addOption(jsonOption())
    .addHelpText("after", notes(kind))
    .action((ids: readonly string[], options: Options) => {
      const filter = refusedFilterOf(options);
      const ways = [ids.length > 0, refusedFilterLeavesOut(filter), options.all === true].filter(
        Boolean,
      ).length;
      if (ways === 0) {
        throw new UsageError(
          "Say which effects: by their entries' ids, by a filter such as --group, or --all.",
        );
      }
      if (ways > 1) throw new UsageError("Give either ids, or a filter, or --all.");
      return withStore(io, options, async ({ outbox }) => {
        if (options.dryRun) return ended(await preview(io, outbox, ids, filter, options));
        ended(
          ids.length > 0
            ? await decideEach(io, outbox, kind, ids, options)
            : await decideMany(io, outbox, kind, filter, options),
        );
      });
    });
}

/** Shows what would be decided on. */
async function preview(
  io: Io,
  outbox: OutboxConsole,
  ids: readonly string[],
  filter: RefusedFilter,
  { json }: Options,
): Promise<ExitCode> {
  if (ids.length === 0) {
    const effects = await outbox.count(filter);
    const groups = await outbox.groups(filter, 1_000);
    if (json) io.print(JSON.stringify({ effects, groups }));
    else if (groups.length > 0) io.print(refusedGroupTable(groups));
    io.say(`${fits(effects)}: --expected ${effects}`);
    return exitCodes.fine;
  }
  let missing = false;
  for (const id of ids) {
    const entry = await outbox.show(id);
    if (entry === undefined) {
      io.say(`There is no refused effect ${printable(id)}.`);
      missing = true;
    } else if (json) {
      const { body: _, repair: __, ...row } = entry;
      io.print(JSON.stringify(row));
    } else io.print(refusedTable([entry]));
  }
  return missing ? exitCodes.failed : exitCodes.fine;
}

async function decideEach(
  io: Io,
  outbox: OutboxConsole,
  kind: Kind,
  ids: readonly string[],
  options: Options,
): Promise<ExitCode> {
  const decider = await deciderOf(io, options);
  let refused = false;
  for (const id of ids) {
    try {
      const decision = await outbox[kind](id, decider);
      if (options.json) io.print(JSON.stringify({ id, decision, kind }));
      io.say(`Effect ${printable(id)} is ${about[kind].done}.`);
    } catch (error) {
      if (!(error instanceof InboxError) || error.retryable) throw error;
      refused = true;
      const { code, message } = error;
      if (options.json) io.print(JSON.stringify({ id, error: { code, message } }));
      io.say(`inbox: ${printable(message)}`);
    }
  }
  return refused ? exitCodes.failed : exitCodes.fine;
}

async function decideMany(
  io: Io,
  outbox: OutboxConsole,
  kind: Kind,
  filter: RefusedFilter,
  options: Options,
): Promise<ExitCode> {
  const count = options.expected ?? (await outbox.count(filter));
  const expected = options.expected ?? (await confirmedCount(io, kind, count, fits(count)));
  const decider = await deciderOf(io, options);
  const recorded = await outbox[`${kind}Many`](filter, { ...decider, expected });
  return carryOutDecision(io, outbox, recorded, options.json === true, "outbox");
}

const fits = (count: number): string => counted(count, "refused effect fits", "refused effects fit");

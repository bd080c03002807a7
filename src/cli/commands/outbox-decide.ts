import type { Command } from "commander";
import { printable } from "../../message/show-value.ts";
import type { OutboxConsole } from "../../outbox/console.ts";
import type { RefusedFilter } from "../../store/outbox-operator.ts";
import { checkChoice, decideEach, decideOnMany, type DecisionWords, type Desk } from "../decide.ts";
import { addDeciderOptions, type DeciderOptions } from "../decider-options.ts";
import { exitCodes, type ExitCode } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { notesOf } from "../notes.ts";
import { jsonOption, wholeNumber } from "../options.ts";
import { addRefusedFilter, refusedFilterOf, type RefusedFilterOptions } from "../outbox-filter.ts";
import { leavesOut } from "../quarantine-filter.ts";
import type { Action } from "../program.ts";
import { counted } from "../table.ts";
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

const about: Readonly<
  Record<Kind, { readonly description: string; readonly done: string; readonly why: string }>
> = {
  retry: {
    description: "give refused effects back to be sent, as they are, under the same ids",
    done: "given back to be sent",
    why: "the account is there now",
  },
  discard: {
    description: "decide that refused effects are not to be sent; what waits behind them goes on",
    done: "discarded",
    why: "the customer has left",
  },
};

const notes = (kind: Kind): string => `
Refused effects are named by their entries' ids, or chosen by a filter. A decision on many is made only if as many fit as
you expect: --dry-run shows how many, --expected confirms the number. It counts at once, and is carried out in batches; a
command that is ended on the way leaves the rest to: inbox outbox resume

Examples:
  $ inbox outbox ${kind} 17 --why "${about[kind].why}"
  $ inbox outbox ${kind} --group 0f3a5c7e9b1d2f4a --dry-run
  $ inbox outbox ${kind} --group 0f3a5c7e9b1d2f4a --expected 4000 --why "${about[kind].why}"

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
    .addHelpText("after", notesOf(notes(kind)))
    .action((ids: readonly string[], options: Options) => {
      const filter = refusedFilterOf(options);
      const missing = "Say which effects: by their entries' ids, by a filter such as --group, or --all.";
      checkChoice(ids, leavesOut(filter), options.all === true, missing);
      return withStore(io, options, async ({ outbox }) => {
        if (options.dryRun) return ended(await preview(io, outbox, ids, filter, options));
        const words: DecisionWords = { noun: "outbox", kind, one: "Effect", done: about[kind].done };
        if (ids.length > 0) {
          return ended(await decideEach(io, ids, words, options, (id, decider) => outbox[kind](id, decider)));
        }
        const desk: Desk = {
          count: () => outbox.count(filter),
          decide: (decision) => outbox[`${kind}Many`](filter, decision),
          carryOn: (id, how) => outbox.carryOn(id, how),
          fits,
        };
        ended(await decideOnMany(io, desk, words, options));
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

const fits = (count: number): string => counted(count, "refused effect fits", "refused effects fit");

import type { Command } from "commander";
import { printable } from "../../message/show-value.ts";
import type { Quarantine } from "../../quarantine/quarantine.ts";
import type { QuarantineFilter } from "../../store/quarantine-entry.ts";
import { checkChoice, decideEach, decideOnMany, type DecisionWords, type Desk } from "../decide.ts";
import { addDeciderOptions, type DeciderOptions } from "../decider-options.ts";
import { exitCodes, type ExitCode } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { notesOf } from "../notes.ts";
import { jsonOption, wholeNumber } from "../options.ts";
import type { Action } from "../program.ts";
import { addFilter, filterOf, leavesOut, type FilterOptions } from "../quarantine-filter.ts";
import { counted } from "../table.ts";
import { UsageError } from "../usage-error.ts";
import { storeCommand, withStore, type StoreOptions } from "../with-store.ts";
import { groupTable } from "./quarantine-groups.ts";
import { entryTable } from "./quarantine-list.ts";

interface Options extends FilterOptions, DeciderOptions, StoreOptions {
  readonly all?: true;
  readonly expected?: number;
  readonly dryRun?: true;
  readonly json?: true;
}

type Kind = "retry" | "apply" | "discard";

const about: Readonly<
  Record<Kind, { readonly description: string; readonly done: string; readonly why: string }>
> = {
  retry: {
    description: "give entries back to be handled, as they are, by the running workers",
    done: "given back to be handled",
    why: "the account is there now",
  },
  apply: {
    description:
      "give late entries back to be handled: they are older than what the ledger remembers, and you know that they were not applied",
    done: "given back to be handled",
    why: "they are not in the books",
  },
  discard: {
    description: "decide that entries are not to be handled; what waits behind them goes on",
    done: "discarded",
    why: "a test of the shop",
  },
};

const notes = (kind: Kind): string => `
Entries are named by their ids, or chosen by a filter; of a filter, open entries only. A decision on many is made only
if as many entries fit as you expect: --dry-run shows how many, --expected confirms the number. It counts at once, and is
carried out in batches; a command that is ended on the way leaves the rest to: inbox quarantine resume

Examples:
  $ inbox quarantine ${kind} 17 --why "${about[kind].why}"
  $ inbox quarantine ${kind} --group 0f3a5c7e9b1d2f4a --dry-run
  $ inbox quarantine ${kind} --group 0f3a5c7e9b1d2f4a --expected 4000 --why "${about[kind].why}"

Exit codes: 0 all decided, 1 refused or failed, 2 wrong usage, 3 some entries could not be decided on, or are left.`;

/** `inbox quarantine retry`, `apply` and `discard`. */
export function quarantineDecideCommand(io: Io, ended: Action, kind: Kind): Command {
  const command = addFilter(storeCommand(kind))
    .description(about[kind].description)
    .argument("[ids...]", "entries, from: inbox quarantine list")
    .option("--all", "all open entries")
    .option("--expected <n>", "how many entries fit the filter", wholeNumber(0, 2_147_483_647))
    .option("--dry-run", "show what would be decided, and decide nothing");
  return addDeciderOptions(command)
    .addOption(jsonOption())
    .addHelpText("after", notesOf(notes(kind)))
    .action((ids: readonly string[], options: Options) => {
      const given = filterOf(options);
      const missing = "Say which entries: by their ids, by a filter such as --group, or --all.";
      checkChoice(ids, leavesOut(given), options.all === true, missing);
      if (kind === "apply" && (given.code ?? "late") !== "late")
        throw new UsageError("Only late entries are applied: leave --code out, or retry the others.");
      const filter = kind === "apply" ? { ...given, code: "late" } : given;
      return withStore(io, options, async ({ quarantine }) => {
        if (options.dryRun) return ended(await preview(io, quarantine, ids, filter, options));
        const words: DecisionWords = { noun: "quarantine", kind, one: "Entry", done: about[kind].done };
        if (ids.length > 0) {
          return ended(
            await decideEach(io, ids, words, options, (id, decider) => quarantine[kind](id, decider)),
          );
        }
        const desk: Desk = {
          count: () => quarantine.count(filter),
          decide: (decision) => quarantine[`${kind}Many`](filter, decision),
          carryOn: (id, how) => quarantine.carryOn(id, how),
          fits,
        };
        ended(await decideOnMany(io, desk, words, options));
      });
    });
}

/** Shows what would be decided on. */
async function preview(
  io: Io,
  quarantine: Quarantine,
  ids: readonly string[],
  filter: QuarantineFilter,
  { json }: Options,
): Promise<ExitCode> {
  if (ids.length === 0) {
    const entries = await quarantine.count(filter);
    const groups = await quarantine.groups(filter, 1_000);
    if (json) io.print(JSON.stringify({ entries, groups }));
    else if (groups.length > 0) io.print(groupTable(groups));
    io.say(`${fits(entries)}: --expected ${entries}`);
    return exitCodes.fine;
  }
  let missing = false;
  for (const id of ids) {
    const entry = await quarantine.show(id);
    if (entry === undefined) {
      io.say(`There is no entry ${printable(id)} in quarantine.`);
      missing = true;
    } else if (json) {
      const { payload: _, repair: _repair, headers: _headers, ...row } = entry;
      io.print(JSON.stringify(row));
    } else io.print(entryTable([entry]));
  }
  return missing ? exitCodes.failed : exitCodes.fine;
}

const fits = (count: number): string => counted(count, "open entry fits", "open entries fit");

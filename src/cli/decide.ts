import { InboxError } from "../errors.ts";
import { printable } from "../message/show-value.ts";
import type { Quarantine } from "../quarantine/quarantine.ts";
import type { BulkDecision, Decider } from "../store/quarantine-store.ts";
import { carryOutDecision } from "./carry-out.ts";
import { confirmedCount } from "./confirm-count.ts";
import { deciderOf, type DeciderOptions } from "./decider-options.ts";
import { exitCodes, type ExitCode } from "./exit-codes.ts";
import type { Io } from "./io.ts";
import { UsageError } from "./usage-error.ts";

/** What a decision says, whatever it is on. */
export interface DecisionWords {
  readonly noun: "quarantine" | "outbox";
  readonly kind: string;
  /** `Entry` or `Effect`, at a sentence's beginning. */
  readonly one: string;
  /** What it is when that is decided. */
  readonly done: string;
}

interface DecideOptions extends DeciderOptions {
  readonly expected?: number;
  readonly json?: true;
}

/** Ids, a filter and `--all` are three ways to say which; exactly one of them must be there. */
export function checkChoice(ids: readonly string[], filtered: boolean, all: boolean, missing: string): void {
  const ways = [ids.length > 0, filtered, all].filter(Boolean).length;
  if (ways === 0) throw new UsageError(missing);
  if (ways > 1) throw new UsageError("Give either ids, or a filter, or --all.");
}

/** Decides on each by itself; what cannot be decided on is said, and does not keep the others from it. */
export async function decideEach(
  io: Io,
  ids: readonly string[],
  words: DecisionWords,
  options: DecideOptions,
  decide: (id: string, decider: Decider) => Promise<string>,
): Promise<ExitCode> {
  const decider = await deciderOf(io, options);
  let refused = false;
  for (const id of ids) {
    try {
      const decision = await decide(id, decider);
      if (options.json) io.print(JSON.stringify({ id, decision, kind: words.kind }));
      io.say(`${words.one} ${printable(id)} is ${words.done}.`);
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

/** What a decision on many needs of where it is made. */
export interface Desk extends Pick<Quarantine, "carryOn"> {
  count(): Promise<number>;
  decide(decision: Decider & { readonly expected: number }): Promise<BulkDecision>;
  /** How many fit, in words. */
  fits(count: number): string;
}

/** Records a decision on all that fit, once their number is confirmed, and carries it out. */
export async function decideOnMany(
  io: Io,
  desk: Desk,
  { kind, noun }: DecisionWords,
  options: DecideOptions,
): Promise<ExitCode> {
  const count = options.expected ?? (await desk.count());
  const expected = options.expected ?? (await confirmedCount(io, kind, count, desk.fits(count)));
  const decider = await deciderOf(io, options);
  const recorded = await desk.decide({ ...decider, expected });
  return carryOutDecision(io, desk, recorded, options.json === true, noun);
}

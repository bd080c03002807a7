import { assertAccount, type Account, type Expected } from "./account.ts";
import type { Draft, Stage } from "./stage.ts";
import type { CaseName, Needs } from "./subject.ts";

/** One test of the suite. */
export interface Case {
  readonly name: CaseName;
  /** The test's name, a sentence. */
  readonly title: string;
  readonly needs?: Omit<Needs, "name" | "variant">;
  /** Rejects where the source breaks a promise. */
  readonly play: (stage: Stage) => Promise<void>;
}

/** Waits until everything is settled, ends the consumers and checks the account. */
export async function finish(stage: Stage, expected: Expected = {}): Promise<Account> {
  await stage.settled();
  const taken = await stage.close();
  assertAccount(taken, expected);
  return taken;
}

/** `count` messages over `keys` keys, in turn. */
export function drafts(name: string, count: number, keys: number, more: Partial<Draft> = {}): Draft[] {
  return Array.from({ length: count }, (_, i) => ({ id: `${name}${i}`, key: `k${i % keys}`, ...more }));
}

const feedEveryMs = 100;

/** Publishes more and more until the promise resolves: whoever joins finds work. */
export async function feedUntil(joined: Promise<void>, more: () => Promise<void>): Promise<void> {
  for (let waits = true; waits;) {
    await more();
    const pause = new Promise<boolean>((resolve) => setTimeout(resolve, feedEveryMs, true));
    waits = await Promise.race([joined.then(() => false), pause]);
  }
}

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startLocalPostgres } from "../../src/local-postgres/local-postgres.ts";
import { openBooks } from "./books.ts";
import { bundle } from "../../scripts/bundle.ts";
import { makePayments } from "./payments.ts";
import { seededRandom } from "./random.ts";
import { faultsOf, sideResult, sum, type DemoResult } from "./result.ts";
import { createSide, type Side } from "./side.ts";
import type { Standing } from "./view.ts";

export interface DemoOptions {
  /** Different payments. */
  readonly messages: number;
  readonly seed: number;
  /** Ends the demo early, and tidily. */
  readonly signal: AbortSignal;
  readonly onStep: (text: string) => void;
  readonly onStanding: (sides: readonly Standing[]) => void;
}

const showEveryMs = 100;
/** Without an acknowledgement on either side for so long it has failed; how long it takes in all is the machine's. */
const stalledAfterMs = 60_000;

/** Plays the same payments to consumers with and without an inbox, killing both, and compares the books. */
export async function demo(options: DemoOptions): Promise<DemoResult> {
  const cleanUps: CleanUp[] = [];
  try {
    return await play(options, cleanUps);
  } finally {
    for (const cleanUp of cleanUps.reverse()) await cleanUp();
  }
}

type CleanUp = () => Promise<void> | void;

async function play(options: DemoOptions, cleanUps: CleanUp[]): Promise<DemoResult> {
  const { messages, seed, signal, onStep, onStanding } = options;
  const payments = makePayments(messages, seededRandom(seed));
  const copies = payments.documents.length + payments.later.size;

  onStep("Starting PostgreSQL");
  const directory = mkdtempSync(join(tmpdir(), "inbox-demo-"));
  cleanUps.push(() => rmSync(directory, { recursive: true, force: true }));
  const server = await startLocalPostgres({ directory });
  cleanUps.push(() => server.stop());
  const books = await openBooks(server.url, ["with_inbox", "without_inbox"]);
  cleanUps.push(() => books.close());

  const side = async (file: string, schema: string): Promise<Side> => {
    const program = await bundle(join(import.meta.dirname, file));
    // Both are killed after the same numbers of acknowledgements.
    const random = seededRandom(seed + 1);
    const made = createSide({ program, databaseUrl: books.urlOf(schema), payments, random });
    cleanUps.push(() => made.stop());
    return made;
  };
  const withInbox = await side("consumer.ts", "with_inbox");
  const withoutInbox = await side("consumer-without-inbox.ts", "without_inbox");

  const expectedCents = sum(payments.expectedCents);
  const standing = async (name: string, { counts }: Side, schema: string): Promise<Standing> => ({
    name,
    counts: counts(),
    copies,
    totalCents: sum(await books.balances(schema)),
    expectedCents,
  });

  onStep(`Sending ${copies} messages to three consumers on each side, and killing them`);
  const begun = performance.now();
  let [seenAcks, movedAt] = [0, begun];
  const done = new AbortController();
  const all = Promise.all([withInbox.run(), withoutInbox.run()]).finally(() => done.abort());
  while (!done.signal.aborted) {
    signal.throwIfAborted();
    const acks = withInbox.counts().acks + withoutInbox.counts().acks;
    if (acks > seenAcks) [seenAcks, movedAt] = [acks, performance.now()];
    if (performance.now() - movedAt > stalledAfterMs)
      throw new Error(
        `Nothing was acknowledged for ${stalledAfterMs / 1_000} s, after ${acks} of ${2 * copies}.`,
      );
    const [failure] = [...withInbox.counts().failures, ...withoutInbox.counts().failures];
    if (failure !== undefined) throw new Error(failure);
    onStanding([
      await standing("with inbox", withInbox, "with_inbox"),
      await standing("without inbox", withoutInbox, "without_inbox"),
    ]);
    await sleep(showEveryMs, undefined, { signal: done.signal }).catch(() => undefined);
  }
  await all;
  const durationMs = Math.round(performance.now() - begun);

  const { applied, conflicts } = await books.ledger();
  const { outcomes } = withInbox.counts();
  const result = {
    seed,
    distinct: payments.distinct,
    copies: copies - payments.distinct,
    expectedCents,
    copiesCents: payments.copiesCents,
    withInbox: {
      ...sideResult(withInbox.counts(), payments, await books.balances("with_inbox")),
      ...{ duplicates: outcomes["duplicate"] ?? 0, conflicts, applied },
    },
    withoutInbox: sideResult(withoutInbox.counts(), payments, await books.balances("without_inbox")),
    durationMs,
  };
  return { ...result, faults: faultsOf(result, payments.changed) };
}

import type { TestContext } from "node:test";
import { createCleanup, type Cleanup } from "../../src/retention/retention.ts";
import { testInbox } from "../inbox/support.ts";

export const hour = 3_600_000;

/** Runs report so often in these tests. */
export const options = { progressEveryMs: 250 } as const;

/** An inbox with a window of an hour, and a database through which time can be made to pass. */
export async function outageCase(t: TestContext) {
  const given = await testInbox(t);
  const { pool, store } = given;
  const cleanup = (): Cleanup =>
    createCleanup({ store, windowsMs: { accounting: hour }, skewMs: 60_000, dutyPercent: 100 });

  async function shift(hours: number, columns: Readonly<Record<string, readonly string[]>>): Promise<void> {
    // One statement, so that no report of a running source comes in between.
    const sets = Object.entries(columns).map(
      ([table, names], i) =>
        `t${i} as (update ${table} set ${names.map((name) => `${name} = ${name} - $1 * interval '1 hour'`).join(", ")})`,
    );
    await pool.query(`with ${sets.join(", ")} select`, [hours]);
  }
  const past = {
    message: ["processed_at"],
    source_stop: ["from_at", "to_at"],
    ledger_stretch: ["oldest"],
  };
  return {
    ...given,
    cleanup,
    /** So much time passes while no process runs. */
    down: (hours: number): Promise<void> =>
      shift(hours, {
        ...past,
        source_clock: ["since", "caught_up_at", "advanced_at"],
        source_worker: ["caught_up_at", "seen_until"],
        worker: ["lease_until", "closed_at"],
      }),
    /** So much time has passed in which the sources ran on, with nothing to do. */
    ranOn: (hours: number): Promise<void> => shift(hours, { ...past, source_clock: ["since"] }),
    /** Resolves when the source has caught up, later than `after`. */
    async untilCaughtUp(after?: Date): Promise<Date> {
      for (;;) {
        const [clock] = await store.progress.list("accounting");
        const at = clock?.caughtUpAt;
        if (clock?.state === "caught-up" && at !== undefined && (after === undefined || at > after))
          return at;
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    },
    /** Sweeps until nothing stands still, however busy the machine; how many identities went. */
    async swept(): Promise<number> {
      for (let identities = 0; ;) {
        const { ended, consumers, identities: gone } = await cleanup().once();
        identities += gone;
        if (ended === "done" && consumers[0]?.waitsFor.length === 0) return identities;
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    },
  };
}

import {
  end,
  guardFor,
  guardNow,
  isIn,
  others,
  reachFor,
  transaction,
  uniqueKey,
  withTransaction,
  type Database,
  type Guard,
  type Transaction,
} from "./database.ts";
import type { Process } from "./explore.ts";

/** Parts of the protocol that can be left out, or put in a wrong order, to see that each is needed. */
export type Part =
  /** A claim looks into the closed generation. */
  | "closed"
  /** It looks there before it looks at the horizon. */
  | "closed first"
  /** It asks whether the message was sent before the horizon. */
  | "horizon"
  /** Behind its insert it compares the mark with the one it saw. */
  | "second look"
  /** At repeatable read it locks the guard's row, which fails if that changed after the snapshot. */
  | "row lock"
  /** A rotation waits for the claims in flight. */
  | "barrier"
  /** A rotation sets the mark. */
  | "rotation's mark"
  /** A batch sets the mark before it deletes. */
  | "batch's mark"
  /** What was noted of the closed generation's reach is believed only for the number that the claim saw. */
  | "reach's number"
  /** The number and the ids of a note are read behind one lock that no rotation passes. */
  | "reach's lock"
  /** A change's mark is another one than every mark before it, also of what was rolled back. */
  | "fresh mark";

export type Without = ReadonlySet<Part>;
export type Isolation = "read committed" | "repeatable read";

const wait: readonly Database[] = [];
const isOver = (db: Database, name: string): boolean =>
  transaction(db, name).state === "committed" || transaction(db, name).state === "aborted";

/** A copy of the message, claimed and applied in one transaction that commits or aborts, or is refused. */
export function claim(name: string, isolation: Isolation, without: Without): Process<Database> {
  const repeatable = isolation === "repeatable read";
  const go = (db: Database, step: number, change: Partial<Transaction> = {}): readonly Database[] => [
    withTransaction(db, name, { step, ...change }),
  ];
  const endings = (db: Database, outcome: Transaction["outcome"] & string): readonly Database[] => [
    end(db, name, true, { outcome }),
    end(db, name, false, { outcome: "retry" }),
  ];
  const refused = (db: Database): readonly Database[] => [end(db, name, false, { outcome: "retry" })];
  /** The guard's row "for share", at repeatable read; `undefined`: it is had, or not needed. */
  function lockGuard(db: Database): readonly Database[] | undefined {
    if (!repeatable || without.has("row lock") || transaction(db, name).row === "share") return undefined;
    if (others(db, name, ({ row }) => row === "update")) return wait;
    if (guardFor(db, name).by !== guardNow(db).by) return refused(db);
    return [withTransaction(db, name, { row: "share" })];
  }
  function lookIntoClosed(db: Database, step: number): readonly Database[] {
    const { saw } = transaction(db, name);
    if (saw!.generation === 0 || without.has("closed")) return go(db, step);
    const reach = reachFor(db, name);
    const tells = reach?.generation === saw!.generation || without.has("reach's number");
    if (reach?.within === false && tells) return go(db, step);
    const locking = lockGuard(db);
    if (locking !== undefined) return locking;
    if (others(db, name, ({ table }) => table === "exclusive")) return wait;
    if (isIn(db, [guardNow(db).open - 1], name)) return endings(db, "duplicate");
    return go(db, step, { reads: true });
  }
  function lookAtHorizon(db: Database, step: number): readonly Database[] {
    if (transaction(db, name).saw!.mark === 0 || without.has("horizon")) return go(db, step);
    const locking = lockGuard(db);
    if (locking !== undefined) return locking;
    if (!guardFor(db, name).late) return go(db, step);
    // Never inserted, only looked up.
    if (others(db, name, ({ table }) => table === "exclusive")) return wait;
    const { open } = guardNow(db);
    return isIn(db, [open, open - 1], name) ? endings(db, "duplicate") : endings(db, "late");
  }
  return {
    name,
    done: (db) => isOver(db, name),
    next(db) {
      const { step, saw } = transaction(db, name);
      const [first, second] = without.has("closed first")
        ? [lookAtHorizon, lookIntoClosed]
        : [lookIntoClosed, lookAtHorizon];
      switch (step) {
        case 0:
          // The user's own first statement: from here on a repeatable read sees nothing new.
          return go(db, 1, { state: "open", ...(repeatable ? { snapshot: db.commits } : {}) });
        case 1:
          return go(db, 2, { saw: { mark: db.mark, generation: 0 } });
        case 2:
          return go(db, 3, { saw: { mark: saw!.mark, generation: saw!.mark === 0 ? 0 : db.generation } });
        case 3:
          return first(db, 4);
        case 4:
          return second(db, 5);
        case 5:
          // The insert's lock; the name of the table is looked up behind it.
          return others(db, name, ({ table }) => table === "exclusive")
            ? wait
            : go(db, 6, { table: "insert" });
        case 6: {
          const { open } = guardNow(db);
          const key = uniqueKey(db, open);
          if (key === "wait") return wait;
          if (key === "there") {
            return repeatable && !isIn(db, [open], name) ? refused(db) : endings(db, "duplicate");
          }
          return go({ ...db, rows: [...db.rows, { generation: open, by: name }] }, 7);
        }
        case 7: {
          if (db.mark === saw!.mark || without.has("second look")) return go(db, 8);
          if (db.generation !== saw!.generation) return refused(db);
          const locking = lockGuard(db);
          if (locking !== undefined) return locking;
          return guardFor(db, name).late && !without.has("horizon") ? refused(db) : go(db, 8);
        }
        case 8:
          // Behind the handler's work.
          return endings(db, "applied");
        default:
          return wait;
      }
    },
  };
}

/** Whoever changes the guard: locks its row, does the steps, and commits or aborts. */
function changer(
  name: string,
  steps: readonly ((db: Database) => Database | "wait" | "stop")[],
  truncates: (db: Database) => number | undefined = () => undefined,
): Process<Database> {
  return {
    name,
    done: (db) => isOver(db, name),
    next(db) {
      const { step } = transaction(db, name);
      if (step === 0) {
        if (others(db, name, ({ row }) => row !== undefined)) return wait;
        return [withTransaction(db, name, { state: "open", step: 1, row: "update" })];
      }
      const work = steps[step - 1];
      if (work === undefined) {
        const truncated = truncates(db);
        return [
          end(db, name, true, truncated === undefined ? {} : { truncates: truncated }),
          end(db, name, false),
        ];
      }
      const after = work(db);
      if (after === "wait") return wait;
      if (after === "stop") return [end(db, name, false)];
      return [withTransaction(after, name, { step: step + 1 })];
    },
  };
}

const changed = (db: Database, by: string, change: Partial<Guard>, without: Without): Database => {
  const now = guardNow(db);
  // Also above what a rotation that was rolled back has left in the sequence.
  const above = without.has("fresh mark") ? now.mark : Math.max(now.mark, db.mark);
  return { ...db, guards: [...db.guards, { ...now, ...change, mark: above + 1, by }] };
};

/** The horizon passes the message; nothing is deleted yet. */
export const advance = (name: string, without: Without): Process<Database> =>
  changer(name, [(db) => changed(db, name, { late: true }, without)]);

/** A batch that forgets: holds the guard's row, sets the mark, deletes what the horizon has passed. */
export function forget(name: string, without: Without): Process<Database> {
  return {
    name,
    done: (db) => isOver(db, name),
    next(db) {
      const { step } = transaction(db, name);
      const { open, late, mark } = guardNow(db);
      switch (step) {
        case 0:
          if (others(db, name, ({ row }) => row === "update")) return wait;
          return [withTransaction(db, name, { state: "open", step: 1, row: "share" })];
        case 1:
          if (!late) return [end(db, name, false)];
          return [withTransaction(without.has("batch's mark") ? db : { ...db, mark }, name, { step: 2 })];
        case 2:
          if (others(db, name, ({ table }) => table === "exclusive")) return wait;
          return [withTransaction(db, name, { step: 3, table: "insert" })];
        case 3: {
          const rows = db.rows.map((row) =>
            row.generation === open &&
            transaction(db, row.by).state === "committed" &&
            row.deletedBy === undefined
              ? { ...row, deletedBy: name }
              : row,
          );
          return [withTransaction({ ...db, rows }, name, { step: 4 })];
        }
        default:
          return [end(db, name, true), end(db, name, false)];
      }
    },
  };
}

/**
 * Notes whether the closed generation's ids reach as far as the message's. Behind its lock neither they nor the number can
 * change, so that is one step; without it the number may be a later one than that of what was read.
 */
export function noteReach(name: string, without: Without): Process<Database> {
  const note = (db: Database, within: boolean): readonly Database[] =>
    db.generation === 0
      ? [end(db, name, false)]
      : [
          withTransaction(
            { ...db, reaches: [...db.reaches, { generation: db.generation, within, by: name }] },
            name,
            { step: 2, reads: true },
          ),
        ];
  return {
    name,
    done: (db) => isOver(db, name),
    next(db) {
      const { step, found } = transaction(db, name);
      if (step === 1) return note(db, found!);
      if (step === 2) return [end(db, name, true)];
      if (others(db, name, ({ table }) => table === "exclusive")) return wait;
      const begun = withTransaction(db, name, { state: "open" });
      const within = isIn(db, [guardNow(db).open - 1], name);
      return without.has("reach's lock")
        ? [withTransaction(begun, name, { step: 1, found: within })]
        : note(begun, within);
    },
  };
}

/** Closes the open generation and opens the next; what was closed before goes, and the horizon passes it. Its age is not modelled. */
export const rotate = (name: string, without: Without): Process<Database> =>
  changer(
    name,
    [
      (db) => {
        const inUse = ({ table, reads }: Transaction): boolean =>
          table === "exclusive" || (!without.has("barrier") && (table === "insert" || reads === true));
        // Its lock timeout: it holds the guard's row, which a claim that it waits for may want.
        return others(db, name, inUse) ? "stop" : withTransaction(db, name, { table: "exclusive" });
      },
      (db) => ({ ...db, generation: db.generation + 1 }),
      (db) => {
        const { open, late } = guardNow(db);
        return changed(db, name, { open: open + 1, late: late || open > 0 }, without);
      },
      (db) => (without.has("rotation's mark") ? db : { ...db, mark: guardFor(db, name).mark }),
    ],
    (db) => guardFor(db, name).open - 2,
  );

/** An empty ledger, of which nothing was ever forgotten or closed, and nobody has begun. */
export function emptyDatabase(processes: readonly Process<Database>[]): Database {
  const begun: readonly (readonly [string, Transaction])[] = [
    ["before", { state: "committed", step: 0, committedAt: 0 }],
    ...processes.map(({ name }) => [name, { state: "none", step: 0 }] as const),
  ];
  return {
    commits: 0,
    transactions: Object.fromEntries(begun),
    rows: [],
    reaches: [],
    guards: [{ open: 0, late: false, mark: 0, by: "before" }],
    mark: 0,
    generation: 0,
  };
}

/** The promise: of all copies one at most is applied and committed. */
export function doubled(db: Database): string | undefined {
  const applied = Object.entries(db.transactions).filter(
    ([, { state, outcome }]) => state === "committed" && outcome === "applied",
  );
  return applied.length > 1 ? `applied by ${applied.map(([name]) => name).join(" and ")}` : undefined;
}

import {
  end,
  isIn,
  others,
  pointerFor,
  pointerNow,
  snapshotOf,
  uniqueKey,
  withTransaction,
  type Database,
  type Transaction,
} from "./database.ts";
import type { Process } from "./explore.ts";

/** Parts of the protocol that can be left out, to see that each is needed. */
export type Part =
  /** A claim locks the guard before it reads the pointer. */
  | "guard"
  /** At repeatable read a claim locks the pointer row, which fails if it changed after the snapshot. */
  | "row lock"
  /** A claim looks into the older generations. */
  | "older"
  /** A claim asks, after its insert, whether the message is from a forgotten time. */
  | "late"
  /** Opening a generation waits for the claims in flight. */
  | "barrier"
  /** Forgetting waits for them as well. */
  | "forget barrier";

export type Without = ReadonlySet<Part>;

const wait: readonly Database[] = [];

/**
 * A copy of the message, sent in the time of generation 0, claimed and applied in one transaction that commits or
 * aborts, or is retried once after a serialization failure.
 */
export function claim(
  name: string,
  isolation: "read committed" | "repeatable read",
  without: Without,
): Process<Database> {
  const repeatable = isolation === "repeatable read";
  const at = (db: Database): Transaction => db.transactions[name]!;
  const go = (db: Database, step: number, change: Partial<Transaction> = {}): readonly Database[] => [
    withTransaction(db, name, { step, ...change }),
  ];
  /** Commits or aborts, as the client, the network and the server please. */
  const endings = (db: Database, outcome: Transaction["outcome"] & string): readonly Database[] => [
    end(db, name, true, { outcome }),
    end(db, name, false, { outcome: "retry" }),
  ];
  return {
    name,
    done: (db) => at(db).state === "committed" || at(db).state === "aborted",
    next(db) {
      const { step, pointer, reads } = at(db);
      switch (step) {
        case 0:
          // The user's own first statement: from here on a repeatable read sees nothing new.
          return go(db, 1, { state: "open", ...(repeatable ? { snapshot: db.commits } : {}) });
        case 1:
          if (repeatable) {
            if (without.has("row lock")) return go(db, 2);
            if (others(db, name, ({ row }) => row === "update")) return wait;
            const [seen, now] = [pointerFor(db, name), pointerNow(db)];
            if (seen.open !== now.open || seen.oldest !== now.oldest)
              return [end(db, name, false, { outcome: "retry" })];
            return go(db, 2, { row: "share" });
          }
          if (without.has("guard")) return go(db, 2);
          return others(db, name, ({ guard }) => guard === "exclusive")
            ? wait
            : go(db, 2, { guard: "share" });
        case 2: {
          const { open, oldest } = pointerFor(db, name);
          return go(db, 3, { pointer: { open, oldest } });
        }
        case 3: {
          // The insert's statement: the older generations are read by its snapshot, before the unique key is asked.
          const older = Array.from(
            { length: pointer!.open - pointer!.oldest },
            (_, i) => pointer!.oldest + i,
          );
          if (without.has("older") || older.length === 0) return go(db, 4);
          if (others(db, name, ({ truncates }) => truncates !== undefined && older.includes(truncates)))
            return wait;
          if (isIn(db, older, snapshotOf(db, name), name)) return endings(db, "duplicate");
          return go(db, 4, { reads: [...reads, ...older] });
        }
        case 4: {
          const key = uniqueKey(db, pointer!.open, name);
          if (key === "wait") return wait;
          if (key === "there") {
            const unseen = repeatable && !isIn(db, [pointer!.open], snapshotOf(db, name), name);
            return unseen ? [end(db, name, false, { outcome: "retry" })] : endings(db, "duplicate");
          }
          return go({ ...db, rows: [...db.rows, { generation: pointer!.open, by: name }] }, 5);
        }
        case 5: {
          const late = !without.has("late") && pointerFor(db, name).oldest > 0;
          // Late: the claim is taken back, and the body goes to quarantine.
          return late ? [end(db, name, false, { outcome: "late" })] : endings(db, "applied");
        }
        default:
          return wait;
      }
    },
  };
}

/** Opens the next generation, if the ring has room for it. */
export function rotate(name: string, ring: number, without: Without): Process<Database> {
  return changer(name, without.has("barrier"), (db) => {
    const { open, oldest } = pointerNow(db);
    if (open + 1 - oldest >= ring) return undefined;
    return { ...db, pointers: [...db.pointers, { open: open + 1, oldest, by: name }] };
  });
}

/** Forgets the oldest generation that is closed. Its age is not modelled: it may be forgotten at any time. */
export function forget(name: string, without: Without): Process<Database> {
  return changer(name, without.has("forget barrier"), (db) => {
    const { open, oldest } = pointerNow(db);
    if (oldest >= open) return undefined;
    if (others(db, name, ({ reads }) => reads.includes(oldest))) return "wait";
    return withTransaction(
      { ...db, pointers: [...db.pointers, { open, oldest: oldest + 1, by: name }] },
      name,
      {
        truncates: oldest,
      },
    );
  });
}

/** One transaction that changes the pointer: the guard, then the row, then the change; commits or aborts. */
function changer(
  name: string,
  unguarded: boolean,
  change: (db: Database) => Database | "wait" | undefined,
): Process<Database> {
  const at = (db: Database): Transaction => db.transactions[name]!;
  return {
    name,
    done: (db) => at(db).state === "committed" || at(db).state === "aborted",
    next(db) {
      switch (at(db).step) {
        case 0: {
          const guarded = others(
            db,
            name,
            ({ guard }) => guard === "exclusive" || (!unguarded && guard === "share"),
          );
          return guarded ? wait : [withTransaction(db, name, { state: "open", step: 1, guard: "exclusive" })];
        }
        case 1: {
          const locked = others(db, name, ({ row }) => row !== undefined && !(unguarded && row === "share"));
          return locked ? wait : [withTransaction(db, name, { step: 2, row: "update" })];
        }
        case 2: {
          const changed = change(db);
          if (changed === "wait") return wait;
          if (changed === undefined) return [end(db, name, false)];
          return [withTransaction(changed, name, { step: 3 })];
        }
        case 3:
          return [end(db, name, true), end(db, name, false)];
        default:
          return wait;
      }
    },
  };
}

/** An empty ledger whose generation 0 is open, and nobody has begun. */
export function emptyDatabase(processes: readonly Process<Database>[]): Database {
  const idle: Transaction = { state: "none", step: 0, reads: [] };
  const before: Transaction = { state: "committed", step: 0, reads: [], committedAt: 0 };
  return {
    commits: 0,
    transactions: Object.fromEntries([
      ["before", before],
      ...processes.map(({ name }) => [name, idle] as const),
    ]),
    rows: [],
    pointers: [{ open: 0, oldest: 0, by: "before" }],
  };
}

/** The promise: of all copies one at most is applied and committed. */
export function doubled(db: Database): string | undefined {
  const applied = Object.entries(db.transactions).filter(
    ([, { state, outcome }]) => state === "committed" && outcome === "applied",
  );
  return applied.length > 1 ? `applied by ${applied.map(([name]) => name).join(" and ")}` : undefined;
}

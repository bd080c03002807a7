/**
 * As much of PostgreSQL as the ledger's protocol leans on: snapshots, a unique key in each generation, locks on the two
 * tables and on the guard's row, truncation, which no snapshot is safe from, and sequences, which have none. One message,
 * whose copies are claimed. Locks are granted in any order, which allows more than a queue would.
 */
export interface Database {
  /** How many transactions have committed; a snapshot is such a number. */
  readonly commits: number;
  readonly transactions: Readonly<Record<string, Transaction>>;
  /** Where the message's identity was inserted; not yet removed. */
  readonly rows: readonly Row[];
  /** Versions of what is known to be forgotten, the oldest first. */
  readonly guards: readonly Guard[];
  /** What was noted of the closed generation's reach, the oldest first. */
  readonly reaches: readonly Reach[];
  /** The sequences: changed at once, and not back by a rollback. 0: never called. */
  readonly mark: number;
  readonly generation: number;
}

export interface Transaction {
  readonly state: "none" | "open" | "committed" | "aborted";
  /** Where its process stands. */
  readonly step: number;
  /** Its commit's place, if it has one. */
  readonly committedAt?: number;
  /** At repeatable read: what it sees until it ends. */
  readonly snapshot?: number;
  /** Its lock on the guard's row. */
  readonly row?: "share" | "update";
  /** A note of the reach has found the identity in the closed generation. */
  readonly found?: boolean;
  /** Its lock on the open table; an exclusive one is on both. */
  readonly table?: "insert" | "exclusive";
  /** It has read the closed table, and holds a lock on it. */
  readonly reads?: boolean;
  /** The sequences as a claim saw them first. */
  readonly saw?: { readonly mark: number; readonly generation: number };
  readonly outcome?: "applied" | "duplicate" | "late" | "retry";
}

export interface Row {
  readonly generation: number;
  readonly by: string;
  readonly deletedBy?: string;
}

export interface Guard {
  /** The generation that claims insert into; the one before it is closed. */
  readonly open: number;
  /** Whether the horizon has passed the message. */
  readonly late: boolean;
  readonly mark: number;
  readonly by: string;
}

/** Whether the closed generation can hold the message's identity, as it was noted. */
export interface Reach {
  /** The number that it is noted for. */
  readonly generation: number;
  /** The message's id lies within: no later than the last one. The worst case: it is itself the last one. */
  readonly within: boolean;
  readonly by: string;
}

export const transaction = (db: Database, name: string): Transaction => db.transactions[name]!;

/** The same database with one transaction changed. */
export const withTransaction = (db: Database, name: string, change: Partial<Transaction>): Database => ({
  ...db,
  transactions: { ...db.transactions, [name]: { ...transaction(db, name), ...change } },
});

const committedBy = (db: Database, by: string, snapshot: number): boolean =>
  (transaction(db, by).committedAt ?? Number.POSITIVE_INFINITY) <= snapshot;

/** Whether what `by` wrote is there for a snapshot, or for its own writer. */
const visible = (db: Database, by: string, snapshot: number, reader: string): boolean =>
  by === reader || committedBy(db, by, snapshot);

/** The snapshot of a transaction's next statement. */
const snapshotOf = (db: Database, name: string): number => transaction(db, name).snapshot ?? db.commits;

/** The guard as a transaction's next statement sees it. */
export const guardFor = (db: Database, name: string): Guard =>
  db.guards.filter(({ by }) => visible(db, by, snapshotOf(db, name), name)).at(-1)!;

/** The guard as it was committed last: also what the names of the tables mean. */
export const guardNow = (db: Database): Guard =>
  db.guards.filter(({ by }) => committedBy(db, by, db.commits)).at(-1)!;

/** The reach as a transaction's next statement sees it: the last one that was noted. */
export const reachFor = (db: Database, name: string): Reach | undefined =>
  db.reaches.filter(({ by }) => visible(db, by, snapshotOf(db, name), name)).at(-1);

/** Whether the identity is in one of these generations, for a transaction's next statement. */
export const isIn = (db: Database, generations: readonly number[], name: string): boolean =>
  db.rows.some(
    ({ generation, by, deletedBy }) =>
      generations.includes(generation) &&
      visible(db, by, snapshotOf(db, name), name) &&
      (deletedBy === undefined || !visible(db, deletedBy, snapshotOf(db, name), name)),
  );

/** The transactions, other than this one, that are open and for which `holds` is true. */
export const others = (db: Database, name: string, holds: (other: Transaction) => boolean): boolean =>
  Object.entries(db.transactions).some(
    ([other, one]) => other !== name && one.state === "open" && holds(one),
  );

/**
 * What a unique key says to an insert: `wait` while another's insert or delete is not decided; `there` if one is
 * committed, whether the snapshot sees it or not.
 */
export function uniqueKey(db: Database, generation: number): "free" | "wait" | "there" {
  const rival = db.rows.find(
    (row) =>
      row.generation === generation &&
      (row.deletedBy === undefined || transaction(db, row.deletedBy).state !== "committed"),
  );
  if (rival === undefined) return "free";
  const { by, deletedBy } = rival;
  if (transaction(db, by).state === "open") return "wait";
  return deletedBy !== undefined && transaction(db, deletedBy).state === "open" ? "wait" : "there";
}

/** Ends a transaction: what it wrote takes effect, or vanishes; its locks go. `truncates`: a generation. */
export function end(
  db: Database,
  name: string,
  committed: boolean,
  { outcome, truncates }: { readonly outcome?: Transaction["outcome"]; readonly truncates?: number } = {},
): Database {
  const commits = committed ? db.commits + 1 : db.commits;
  const ended: Transaction = {
    ...{ state: committed ? "committed" : "aborted", step: transaction(db, name).step },
    ...(outcome === undefined ? {} : { outcome }),
    ...(committed ? { committedAt: commits } : {}),
  };
  const rows = db.rows.flatMap((row): Row[] => {
    if (row.by === name && !committed) return [];
    if (committed && row.generation === truncates) return [];
    if (row.deletedBy !== name || committed) return [row];
    const { deletedBy: _, ...kept } = row;
    return [kept];
  });
  return {
    ...db,
    commits,
    transactions: { ...db.transactions, [name]: ended },
    rows,
    guards: db.guards.filter(({ by }) => committed || by !== name),
    reaches: db.reaches.filter(({ by }) => committed || by !== name),
  };
}

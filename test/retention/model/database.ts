/**
 * As much of PostgreSQL as the protocol of generations leans on: snapshots, a unique key in each generation, locks on a
 * table, on a row and on a generation, and truncation, which no snapshot is safe from. One message, whose copies are
 * claimed. Locks are granted in any order, which allows more than a queue would.
 */
export interface Database {
  /** How many transactions have committed; a snapshot is such a number. */
  commits: number;
  readonly transactions: Readonly<Record<string, Transaction>>;
  /** Where the message's identity was inserted; not yet removed. */
  readonly rows: readonly Row[];
  /** Versions of the one row that says which generation is open and which are forgotten, the oldest first. */
  readonly pointers: readonly Pointer[];
}

export interface Transaction {
  readonly state: "none" | "open" | "committed" | "aborted";
  /** Where its process stands. */
  readonly step: number;
  /** Its commit's place, if it has one. */
  readonly committedAt?: number;
  /** At repeatable read: what it sees until it ends. */
  readonly snapshot?: number;
  readonly guard?: "share" | "exclusive";
  /** Its lock on the pointer row. */
  readonly row?: "share" | "update";
  /** Generations whose rows it has read, and holds locks on. */
  readonly reads: readonly number[];
  /** The generation it is about to truncate. */
  readonly truncates?: number;
  /** What a claim has read of the pointer. */
  readonly pointer?: { readonly open: number; readonly oldest: number };
  readonly outcome?: "applied" | "duplicate" | "late" | "retry";
}

export interface Row {
  readonly generation: number;
  readonly by: string;
}

export interface Pointer {
  /** The generation that claims insert into. */
  readonly open: number;
  /** The oldest that is not forgotten; whatever was sent in an earlier one's time is late. */
  readonly oldest: number;
  readonly by: string;
}

const transaction = (db: Database, name: string): Transaction => db.transactions[name]!;

/** The same database with one transaction changed. */
export const withTransaction = (db: Database, name: string, change: Partial<Transaction>): Database => ({
  ...db,
  transactions: { ...db.transactions, [name]: { ...transaction(db, name), ...change } },
});

/** Whether what `by` wrote is there for a snapshot, or for its own writer. */
const visible = (db: Database, by: string, snapshot: number, reader: string): boolean =>
  by === reader || (transaction(db, by).committedAt ?? Number.POSITIVE_INFINITY) <= snapshot;

/** The snapshot of a transaction's next statement. */
export const snapshotOf = (db: Database, name: string): number =>
  transaction(db, name).snapshot ?? db.commits;

/** The pointer as a transaction's next statement sees it. */
export const pointerFor = (db: Database, name: string): Pointer =>
  db.pointers.filter(({ by }) => visible(db, by, snapshotOf(db, name), name)).at(-1)!;

/** The pointer as it was committed last, whoever sees it. */
export const pointerNow = (db: Database): Pointer =>
  db.pointers.filter(({ by }) => visible(db, by, db.commits, "")).at(-1)!;

/** Whether the identity is in one of these generations, for a snapshot. */
export const isIn = (
  db: Database,
  generations: readonly number[],
  snapshot: number,
  reader: string,
): boolean =>
  db.rows.some(({ generation, by }) => generations.includes(generation) && visible(db, by, snapshot, reader));

/** The transactions, other than this one, that are open and for which `holds` is true. */
export const others = (db: Database, name: string, holds: (other: Transaction) => boolean): boolean =>
  Object.entries(db.transactions).some(
    ([other, one]) => other !== name && one.state === "open" && holds(one),
  );

/**
 * What a unique key says to an insert: `wait` while another's is not decided; `there` if one is committed, whether the
 * snapshot sees it or not.
 */
export function uniqueKey(db: Database, generation: number, name: string): "free" | "wait" | "there" {
  const rival = db.rows.find((row) => row.generation === generation && row.by !== name);
  if (rival === undefined) return "free";
  return transaction(db, rival.by).state === "open" ? "wait" : "there";
}

/** Ends a transaction: its rows, its pointer and its truncation take effect, or vanish; its locks go. */
export function end(
  db: Database,
  name: string,
  committed: boolean,
  change: Partial<Transaction> = {},
): Database {
  const { step, outcome, truncates } = transaction(db, name);
  const commits = committed ? db.commits + 1 : db.commits;
  const ended: Transaction = {
    ...{ state: committed ? "committed" : "aborted", step, reads: [] },
    ...(outcome === undefined ? {} : { outcome }),
    ...(committed ? { committedAt: commits } : {}),
    ...change,
  };
  return {
    commits,
    transactions: { ...db.transactions, [name]: ended },
    rows: db.rows.filter(
      ({ generation, by }) => (committed || by !== name) && !(committed && generation === truncates),
    ),
    pointers: db.pointers.filter(({ by }) => committed || by !== name),
  };
}

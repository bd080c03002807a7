import { InboxError } from "../../../errors.ts";
import type { QueryResult, Tx } from "../../statement.ts";
import type { TransactionStatus } from "../driver.ts";
import { refusal } from "./pending.ts";
import { asResult, type PostgresJsHandle } from "./postgres-js-client.ts";
import { describeGiven, shapeOf } from "./shapes.ts";

/** A transaction the user opened, as the store uses it. It is never begun, committed or rolled back through this. */
export interface UserTransaction {
  query<Row = Record<string, unknown>>(
    text: string,
    values?: readonly unknown[],
  ): Promise<Pick<QueryResult<Row>, "rows" | "rowCount">>;
  /** What the server said last, where the driver tells. */
  status?(): TransactionStatus;
}

interface PgTransactionClient {
  query(text: string, values?: unknown[]): Promise<Pick<QueryResult, "rows" | "rowCount">>;
  getTransactionStatus?(): string | null;
}

/**
 * Wraps what a function (`caller`) that needs a transaction was given: a client of `pg` on which BEGIN ran, the `sql` of a `sql.begin` callback,
 * or any `Tx`. Throws `not-a-transaction` for pools, for ORM objects (`docs/drivers.md` has a line for each) and for
 * anything without a `query`. That a transaction is open is not known by that: the store proves it.
 */
export function userTransaction(given: unknown, caller = "processInTransaction"): UserTransaction {
  const refused = (what: string, advice: string): InboxError => refusedBy(caller, what, advice);
  const shape = shapeOf(given);
  switch (shape) {
    case "pg client":
      return fromPgClient(given as PgTransactionClient);
    case "postgres.js transaction":
      return fromPostgresJs(given as PostgresJsHandle);
    case "query object":
      return checked(given as Tx);
    case "pg pool":
      throw refused(
        "a pool",
        "Each of its statements runs in a transaction of its own. Give the client on which you ran BEGIN.",
      );
    case "postgres.js":
      throw refused(
        "the postgres.js client itself",
        "Give the sql of the callback: sql.begin((sql) => ...).",
      );
    case "knex":
      throw refused("a Knex object", "Wrap the transaction: docs/drivers.md has the line for it.");
    case "kysely":
      throw refused("a Kysely object", "Wrap the transaction: docs/drivers.md has the line for it.");
    case "drizzle":
      throw refused("a Drizzle object", "Wrap the transaction: docs/drivers.md has the line for it.");
    case "prisma":
      throw refused("a Prisma client", "Wrap the transaction: docs/drivers.md has the line for it.");
    case "typeorm":
      throw refused(
        "a TypeORM object",
        "Wrap the transaction's manager: docs/drivers.md has the line for it.",
      );
    case "sequelize":
      throw refused(
        "a Sequelize instance",
        "Give an object with query(text, values) that runs inside the transaction.",
      );
    case "other":
      throw refused(
        describeGiven(given),
        "Give the client on which you ran BEGIN, or an object with query(text, values).",
      );
  }
}

function fromPgClient(client: PgTransactionClient): UserTransaction {
  let justFailed = false;
  const transaction: UserTransaction = {
    query: async (text, values) => {
      stopIfRefused(text, values);
      try {
        const { rows, rowCount } = await client.query(text, values as unknown[] | undefined);
        justFailed = false;
        return { rows: rows as never[], rowCount };
      } catch (error) {
        justFailed = true;
        throw error;
      }
    },
  };
  if (typeof client.getTransactionStatus !== "function") return transaction;
  return {
    ...transaction,
    status: () => {
      // pg does not forget the status of a connection that ended.
      if ((client as { _queryable?: unknown })._queryable === false) return "lost";
      const letter = client.getTransactionStatus!();
      // pg rejects a statement before it has read the status after it.
      if (letter === "T" && justFailed) return "unknown";
      return letter === "T" ? "open" : letter === "E" ? "failed" : letter === "I" ? "idle" : "unknown";
    },
  };
}

function fromPostgresJs(sql: PostgresJsHandle): UserTransaction {
  return {
    query: async (text, values) => {
      stopIfRefused(text, values);
      return asResult(
        await sql.unsafe(text, values?.map((value) => (value === undefined ? null : value)) ?? []),
      );
    },
  };
}

function checked(tx: Tx): UserTransaction {
  return {
    query: async (text, values) => {
      stopIfRefused(text, values);
      const answer: unknown = await tx.query(text, values);
      const { rows, rowCount } = (answer ?? {}) as { rows?: unknown; rowCount?: unknown };
      if (!Array.isArray(rows)) {
        throw new InboxError(
          "not-a-transaction",
          "The tx's query must answer { rows, rowCount }, and rows is no array. docs/drivers.md has a line for each ORM.",
        );
      }
      return { rows: rows as never[], rowCount: typeof rowCount === "number" ? rowCount : null };
    },
  };
}

function stopIfRefused(text: string, values: readonly unknown[] | undefined): void {
  const reason = refusal(text, values);
  if (reason) throw reason;
}

function refusedBy(caller: string, what: string, advice: string): InboxError {
  return new InboxError(
    "not-a-transaction",
    `${caller} needs an open transaction and was given ${what}. ${advice}`,
  );
}

/** One SQL statement and its parameters (`$1`, `$2`, …). */
export interface Statement {
  readonly text: string;
  readonly values?: readonly unknown[] | undefined;
  /** The number of rows the statement must change; another number fails the message (`unexpected-row-count`). */
  readonly expectRows?: number | undefined;
}

export interface QueryResult<Row = Record<string, unknown>> {
  readonly rows: Row[];
  readonly rowCount: number | null;
  /** The command tag's first word: `SELECT`, `INSERT`, `COMMIT`, `ROLLBACK`, … */
  readonly command: string;
}

/** What a handler's `tx`, and anybody's own transaction, must be able to do. ORMs satisfy it in a line (docs/drivers.md). */
export interface Tx {
  query<Row = Record<string, unknown>>(
    text: string,
    values?: readonly unknown[],
  ): Promise<Pick<QueryResult<Row>, "rows" | "rowCount">>;
}

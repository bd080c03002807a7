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

// Known to every copy of this package in a process: a statement that was taken for a plain result would be a claim
// without its effect.
const mark: unique symbol = Symbol.for("transactional-inbox.statement") as never;

/** A statement that a handler may return instead of running it. Made by `sql` or `statement`. */
export class BuiltStatement implements Statement {
  readonly [mark] = true;
  readonly text: string;
  readonly values: readonly unknown[];
  readonly expectRows: number | undefined;

  constructor(text: string, values: readonly unknown[], expectRows?: number) {
    this.text = text;
    this.values = values;
    this.expectRows = expectRows;
  }

  /** The same statement, which fails the message unless it changes exactly this many rows. */
  expecting(rows: number): BuiltStatement {
    return new BuiltStatement(this.text, this.values, rows);
  }
}

/** A statement from text with `$1`, `$2`, … and its values. */
export const statement = (text: string, values: readonly unknown[] = []): BuiltStatement =>
  new BuiltStatement(text, values);

const texts = new WeakMap<TemplateStringsArray, string>();

/** A statement from a template: each `${value}` becomes a parameter, never text. */
export function sql(parts: TemplateStringsArray, ...values: readonly unknown[]): BuiltStatement {
  let text = texts.get(parts);
  if (text === undefined) {
    text = parts.reduce((before, part, i) => `${before}$${i}${part}`);
    texts.set(parts, text);
  }
  return new BuiltStatement(text, values);
}

/** Whether a value was made by `sql` or `statement`, of this or another copy of the package. */
export const isBuiltStatement = (value: unknown): value is BuiltStatement =>
  typeof value === "object" && value !== null && mark in value;

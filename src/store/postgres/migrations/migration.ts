/** One step of the schema. Never edited once released; a change is a new step. */
export interface Migration {
  readonly version: number;
  readonly name: string;
  /** The statements, with the quoted schema name filled in. */
  readonly sql: (schema: string) => string;
}

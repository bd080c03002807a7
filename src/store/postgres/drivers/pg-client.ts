/** The part of a `pg` pool that is used. `Pool` of `pg` 8 satisfies it. */
export interface PgPoolLike {
  connect(): Promise<PgClientLike>;
  on(event: "error", listener: (error: Error) => void): unknown;
  on(event: "connect", listener: (client: PgClientLike) => void): unknown;
  listeners?(event: "error"): unknown[];
  readonly options?: { readonly max?: number | undefined } | undefined;
  readonly Client?: unknown;
}

/** The part of a client from a `pg` pool that is used. */
export interface PgClientLike {
  query(text: string, values?: unknown[]): Promise<PgResultLike>;
  on(event: "error", listener: (error: Error) => void): unknown;
  on(event: "end", listener: () => void): unknown;
  removeListener(event: "error", listener: (error: Error) => void): unknown;
  removeListener(event: "end", listener: () => void): unknown;
  release(error?: Error | boolean): void;
  /** Since pg 8.21. */
  getTransactionStatus?(): string | null;
  /** The process id that was told at the start of the connection; a pooler makes one up. */
  readonly processID?: number | null;
}

/** What `pg` answers to one statement; an array of them where the text held several. */
export type PgResultLike = PgOneResult | PgOneResult[];

interface PgOneResult {
  readonly rows: unknown[];
  readonly rowCount: number | null;
  readonly command: string | null;
}

/** A column of an answer, as pg's parser gives it. */
export interface PgField {
  readonly name: string;
  readonly dataTypeID: number;
}

/** pg's own object for one server connection: the methods its cursor and stream packages are built on. */
export interface PgProtocol {
  readonly stream: { readonly writable: boolean; write(message: Uint8Array): boolean; destroy?(): void };
  query(text: string): unknown;
  parse(message: { text: string; name?: string }): unknown;
  bind(message: { values: readonly unknown[]; statement?: string }): unknown;
  describe(message: { type: "P"; name: string }): unknown;
  close(message: { type: "S"; name: string }): unknown;
  execute(message?: object): unknown;
  sync(): unknown;
  sendCopyFail?(reason: string): unknown;
  on(event: "readyForQuery", listener: (message: { status?: string } | undefined) => void): unknown;
  removeListener(
    event: "readyForQuery",
    listener: (message: { status?: string } | undefined) => void,
  ): unknown;
}

/** What a client must have for its statements to be sent in flights of our own. */
export interface PgFlightParts {
  readonly protocol: PgProtocol;
  /** Turns a JavaScript value into what pg would send for it. Throws where pg would. */
  readonly toWire: (value: unknown) => unknown;
  /** The parser the user chose for a column's type. */
  readonly parserOf: (typeId: number) => (text: string) => unknown;
  /** Hands pg an object that receives the answers up to the next ReadyForQuery. */
  readonly submit: (receiver: object) => void;
  /** The prototype a receiver must have to be let into a client with `pipeline: true`; null elsewhere. */
  readonly receiverPrototype: object | null;
}

interface QueryClass {
  new (config: { text: string; values: unknown[] }): { prepare(connection: object): void };
  readonly prototype: { prepare?: unknown };
}

/** Whether pools of this client class can be driven by flights. False for `pg.native` and for wrapped clients. */
export function hasFlights(clientClass: unknown): boolean {
  const Query = (clientClass as { Query?: QueryClass } | undefined)?.Query;
  return typeof Query?.prototype?.prepare === "function";
}

const protocolMethods = [
  "query",
  "parse",
  "bind",
  "describe",
  "close",
  "execute",
  "sync",
  "on",
  "removeListener",
] as const;

/** The parts of `client` that flights need, or null where one of them is missing (`pg.native`, wrapped clients). */
export function flightParts(client: PgClientLike): PgFlightParts | null {
  const inner = client as unknown as {
    connection?: PgProtocol;
    constructor: unknown;
    pipeline?: boolean;
    getTypeParser?(typeId: number, format: "text"): (text: string) => unknown;
    query(receiver: object): void;
  };
  const protocol = inner.connection;
  if (!protocol || protocolMethods.some((name) => typeof protocol[name] !== "function")) return null;
  if (typeof inner.getTypeParser !== "function" || !hasFlights(inner.constructor)) return null;
  const Query = (inner.constructor as { Query: QueryClass }).Query;
  const toWire = valueMapperOf(Query);
  if (!toWire) return null;
  return {
    protocol,
    toWire,
    parserOf: (typeId) => inner.getTypeParser!(typeId, "text"),
    submit: (receiver) => inner.query(receiver),
    receiverPrototype: inner.pipeline === true ? Query.prototype : null,
  };
}

/** pg exports no way to its value conversion, but hands it to `bind`: a connection that only listens receives it. */
function valueMapperOf(Query: QueryClass): ((value: unknown) => unknown) | null {
  let mapper: unknown;
  const ignore = () => undefined;
  const listening = {
    parsedStatements: {},
    submittedNamedStatements: {},
    bind: (config: { valueMapper?: unknown }) => (mapper = config.valueMapper),
    parse: ignore,
    describe: ignore,
    execute: ignore,
    sync: ignore,
    flush: ignore,
    close: ignore,
  };
  new Query({ text: "select $1", values: [null] }).prepare(listening);
  return typeof mapper === "function" ? (mapper as (value: unknown) => unknown) : null;
}

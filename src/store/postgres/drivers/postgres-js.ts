import { InboxError } from "../../../errors.ts";
import type { QueryResult } from "../../statement.ts";
import type { Driver, DriverConnection } from "../driver.ts";
import { connectInTime } from "./connect-in-time.ts";
import { connectionLost, refusal, storeUnavailable, type PendingStatement } from "./pending.ts";
import {
  asResult,
  type PostgresJsConnection,
  type PostgresJsLike,
  type PostgresJsReserved,
} from "./postgres-js-client.ts";
import { openConnections, type OpenConnections } from "./postgres-js-open.ts";
import { transactionWatch } from "./transaction-watch.ts";

/**
 * The driver for a client of `postgres` 3.4. The client stays the caller's: the driver never ends it.
 *
 * The trap it closes: when the server ends a reserved connection, `postgres` connects it again for somebody else, and
 * the old handle still writes to it, into no transaction or into another's. So the adapter takes hold of the
 * connection itself, in the same turn of the event loop in which it was reserved, is told in the turn in which it
 * closes, and never touches the handle again after that, not even to release it.
 */
export function postgresJsDriver(sql: PostgresJsLike): Driver {
  checkOptions(sql.options);
  const open = openConnections();
  return {
    name: "postgres",
    pipelined: sql.options.prepare !== false,
    maxConnections: sql.options.max,
    ...(sql.listen && {
      // It listens again by itself on a connection that it made anew, without a word.
      async listen(channel, onNotification) {
        const { unlisten } = await sql.listen!(channel, onNotification);
        return () => void unlisten().catch(() => undefined);
      },
    }),
    async connect(timeoutMs) {
      const held = await connectInTime(
        async () => {
          if (open.size() === 0) await openOne(sql, open);
          return capture(await sql.reserve(), open, sql.options.prepare === false);
        },
        (late) => late.connection.release(),
        timeoutMs,
      );
      // The probe is written a few microtasks after it is asked for; its answer need not be waited for.
      for (let turn = 0; turn < 8 && !held.captured(); turn++) await Promise.resolve();
      if (!held.captured()) await held.usable;
      // Counted for the back-off of its reconnects, and set back by queries that connect, but not by reserve().
      if (sql.options.shared) sql.options.shared.retries = 0;
      return held.connection;
    },
  };
}

function checkOptions({ transform, fetch_types }: PostgresJsLike["options"]): void {
  if (transform?.column?.from || transform?.value?.from || transform?.row?.from) {
    throw new InboxError(
      "invalid-option",
      "The postgres client has a transform for what it reads, so that columns come under other names. Give the inbox a client without one.",
    );
  }
  if (fetch_types === false) {
    throw new InboxError(
      "invalid-option",
      "The postgres client has fetch_types: false, with which its reserve() never answers on a new connection. Leave it on.",
    );
  }
}

/**
 * Makes one connection open by an ordinary query, so that reserve() finds it at once. A reserve() that has to wait for
 * a connection can be forgotten for ever when another one closes meanwhile (3.4.9), and a query cannot.
 */
async function openOne(sql: PostgresJsLike, open: OpenConnections): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    try {
      await sql.unsafe("select 1", [], {
        onexecute(connection: PostgresJsConnection) {
          open.watch(connection);
          return true;
        },
      });
      return;
    } catch (error) {
      // A connection that ended while a statement ran gives the server's farewell once more when it connects again.
      const farewell = isServerError(error) && endsTheSession(error);
      if (!farewell || attempt >= sql.options.max) throw error;
    }
  }
}

interface Held {
  readonly connection: DriverConnection;
  /** Rejects where the installed version of `postgres` does not let the adapter take hold of the connection. */
  readonly usable: Promise<void>;
  captured(): boolean;
}

function capture(handle: PostgresJsReserved, open: OpenConnections, oneByOne: boolean): Held {
  const watch = transactionWatch();
  const unanswered = new Set<PendingStatement>();
  let raw: PostgresJsConnection | null = null;
  let lost: InboxError | null = null;
  let held = true;
  let pid: number | null = null;
  let listeners: ((error: Error) => void)[] = [];

  // The only way to the connection is a statement; it travels with whatever comes next.
  const probe = handle.unsafe("select 1", [], {
    onexecute(connection: PostgresJsConnection) {
      raw = connection;
      open.watch(connection);
      connection.onclose = onLost;
      return true;
    },
  });
  const usable = Promise.resolve(probe).then(
    (answer) => {
      pid = answer.state?.pid ?? null;
      if (raw !== null && pid !== null) return;
      handle.release();
      throw new InboxError(
        "invalid-option",
        "This version of postgres is not known to the adapter: use postgres 3.4.",
      );
    },
    (error: unknown) => {
      onLost(error);
      throw storeUnavailable("it was lost before it could be used", error);
    },
  );
  usable.catch(ignore);
  // Without prepared statements a statement goes in two halves, and PgBouncer may give the server connection away between
  // them when another statement is on the wire.
  let turn: Promise<void> = usable.catch(ignore);

  const connection: DriverConnection = {
    query(text, values) {
      const answer = new Promise<QueryResult<never>>((resolve, reject) => {
        const refused = refusal(text, values);
        if (refused) return reject(refused);
        if (lost) return reject(lost);
        if (!held)
          return reject(
            new InboxError("connection-lost", "The connection was given back and cannot be used any more."),
          );
        const statement = { text, values, resolve, reject };
        unanswered.add(statement);
        if (oneByOne) turn = turn.then(() => send(statement));
        else void send(statement);
      });
      answer.catch(ignore);
      return answer;
    },
    status: () => (lost ? "lost" : watch.status()),
    onLost(listener) {
      if (lost) listener(lost);
      else listeners.push(listener);
    },
    release() {
      if (!held) return;
      if (lost || unanswered.size > 0 || watch.status() !== "idle") return discard();
      held = false;
      if (pid !== null) letGo();
      else void usable.then(letGo, ignore);
    },
    discard,
  };
  return { connection, usable, captured: () => raw !== null };

  async function send(statement: PendingStatement): Promise<void> {
    if (!unanswered.has(statement)) return;
    // The probe counts as a neighbour while it is on the wire.
    const alone = () => oneByOne || (unanswered.size === 1 && pid !== null);
    const wasAlone = alone();
    const { text } = statement;
    const values = statement.values?.map((value) => (value === undefined ? null : value)) ?? [];
    try {
      // `prepare` follows the client's own option: with prepare: false there it stays off.
      const answer = await handle.unsafe(text, values, { prepare: true });
      if (!unanswered.delete(statement)) return;
      const result = asResult<never>(answer);
      if (pid !== null && result.pid !== null && result.pid !== pid) {
        unanswered.add(statement);
        return doubt(new Error("The statement was answered by another server connection."));
      }
      watch.succeeded(text, result.command);
      statement.resolve({ rows: result.rows, rowCount: result.rowCount, command: result.command });
    } catch (error) {
      if (!unanswered.has(statement)) return;
      if (isServerError(error) && !endsTheSession(error)) watch.failed(text);
      // The driver could not write a value. With others on the wire it rejects the wrong one and leaves this one hanging.
      else if (!wasAlone || !alone() || isConnectionError(error)) return doubt(error);
      unanswered.delete(statement);
      statement.reject(error);
    }
  }

  function letGo(): void {
    if (raw) raw.onclose = null;
    handle.release();
  }

  function discard(): void {
    if (!held) return;
    held = false;
    if (!lost) close(connectionLost(new Error("it was closed while statements were running")));
  }

  function doubt(cause: unknown): void {
    if (lost) return;
    const error = connectionLost(cause);
    if (held) tell(error);
    close(error);
  }

  function onLost(cause: unknown): void {
    raw = null;
    if (lost) return;
    const error = connectionLost(cause);
    if (held) tell(error);
    rejectAll(error);
  }

  function tell(error: InboxError): void {
    lost = error;
    const told = listeners;
    listeners = [];
    for (const listener of told) listener(error);
  }

  function close(error: InboxError): void {
    rejectAll(error);
    raw?.terminate();
  }

  function rejectAll(error: InboxError): void {
    const open = [...unanswered];
    unanswered.clear();
    for (const statement of open) statement.reject(error);
  }
}

function isServerError(error: unknown): error is Error & { code: string } {
  return (
    error instanceof Error &&
    error.name === "PostgresError" &&
    typeof (error as { code?: unknown }).code === "string"
  );
}

// What the server says before it closes: connection exceptions, shutdown, termination, session timeouts.
function endsTheSession(error: { code: string }): boolean {
  return /^(?:08...|57P0[12345]|25P0[34])$/.test(error.code);
}

// Errors of the driver's value conversion have no code, or one of these. Whatever else is no answer of the server is
// an error of the socket, under whatever code.
const refusedByDriver = new Set(["UNDEFINED_VALUE", "MAX_PARAMETERS_EXCEEDED"]);

function isConnectionError(error: unknown): boolean {
  const { code } = (error ?? {}) as { code?: unknown };
  return typeof code === "string" && !refusedByDriver.has(code);
}

function ignore(): void {
  // The caller may look at the promise later, or never; either way it must not end the process.
}

import { randomBytes } from "node:crypto";
import { InboxError } from "../../../errors.ts";
import type { QueryResult } from "../../statement.ts";
import type { Driver, DriverConnection, TransactionStatus } from "../driver.ts";
import { connectInTime } from "./connect-in-time.ts";
import { connectionLost, refusal, type Wire } from "./pending.ts";
import { pgChain } from "./pg-chain.ts";
import { flightParts, hasFlights, type PgClientLike, type PgPoolLike } from "./pg-client.ts";
import { pgFlights } from "./pg-flight.ts";
import { pgListen } from "./pg-listen.ts";
import { keptStatements } from "./pg-kept-statements.ts";
import { statementMemory, type StatementMemory } from "./pg-statement-memory.ts";

export interface PgDriverOptions {
  /**
   * Whether statements are prepared under names. By default they are where the connection is the server's own: a text
   * that comes again is then parsed once a connection. Behind a pooler, which shows by another process id, they are not.
   * `true`: also behind a pooler that passes named statements through, under names that end with the transaction.
   * `false`: never.
   */
  readonly prepare?: boolean | undefined;
}

/**
 * The driver for a pool of `pg` 8. Statements travel together on any pool, with `pipeline: true` or without. The pool
 * stays the caller's: the driver never ends it.
 */
export function pgDriver(pool: PgPoolLike, options: PgDriverOptions = {}): Driver {
  survive(pool);
  // A name is unique to this driver: another one on the same pool has its own.
  const prefix = `inbox_${randomBytes(4).toString("hex")}`;
  const memories = new WeakMap<PgClientLike, StatementMemory>();

  async function memoryOf(client: PgClientLike): Promise<StatementMemory> {
    const known = memories.get(client);
    if (known !== undefined) return known;
    const keeps = options.prepare === undefined && (await isServersOwn(client));
    const memory = keeps ? keptStatements(prefix) : statementMemory(options.prepare === true);
    memories.set(client, memory);
    return memory;
  }

  return {
    name: "pg",
    pipelined: hasFlights(pool.Client),
    maxConnections: pool.options?.max,
    ...(typeof pool.Client === "function" && {
      listen: (channel, onNotification, onLost) => pgListen(pool, channel, onNotification, onLost),
    }),
    async connect(timeoutMs) {
      for (;;) {
        const client = await connectInTime(
          () => pool.connect(),
          (late) => late.release(),
          timeoutMs,
        );
        // Somebody gave it back inside a transaction: what is sent on it would be part of that.
        const said = client.getTransactionStatus?.();
        if (said !== "T" && said !== "E") return hold(client, await memoryOf(client));
        client.release(new Error("The connection was given back inside an open transaction."));
      }
    },
  };
}

/**
 * An `error` that nobody hears ends the process. An idle client that loses its connection makes its pool emit one; and
 * a client emits one itself if the server's last word comes in one piece with its "ready", for then the pool does not
 * listen any more and we do not yet.
 */
function survive(pool: PgPoolLike): void {
  if (pool.listeners?.("error").includes(ignoreLostIdleClient)) return;
  pool.on("error", ignoreLostIdleClient);
  pool.on("connect", (client) => client.on("error", ignoreLostClient));
}

function ignoreLostClient(): void {
  // Its `end` follows, and whoever holds the client hears that.
}

function ignoreLostIdleClient(): void {
  // The pool has removed the client already; the next connect makes a new one.
}

/**
 * Whether a client talks to the very server process that answers it. A pooler gives its clients a process id of its own
 * making, and lends them another server process with each transaction.
 */
async function isServersOwn(client: PgClientLike): Promise<boolean> {
  if (typeof client.processID !== "number") return false;
  // It may be lost before anybody listens; then what follows says so.
  client.on("error", ignoreLostIdleClient);
  try {
    const answer = await client.query("select pg_backend_pid()::text as pid");
    const rows = Array.isArray(answer) ? [] : (answer.rows as { pid?: unknown }[]);
    return Number(rows[0]?.pid) === client.processID;
  } catch {
    return false;
  } finally {
    client.removeListener("error", ignoreLostIdleClient);
  }
}

function hold(client: PgClientLike, memory: StatementMemory): DriverConnection {
  const initialStatus = client.getTransactionStatus?.() ?? null;
  let status = statusOf(initialStatus);
  let lost: InboxError | null = null;
  let held = true;
  let listeners: ((error: Error) => void)[] = [];
  const parts = flightParts(client);
  const events = {
    lost: onLost,
    ready(letter: string | undefined) {
      status = statusOf(letter);
    },
  };
  const wire: Wire = parts ? pgFlights(parts, { initialStatus, memory }, events) : pgChain(client, events);
  const onEnd = () => onLost(new Error("Connection terminated"));
  client.on("error", onLost);
  client.on("end", onEnd);

  return {
    query(text, values) {
      let resolve!: (result: QueryResult<never>) => void;
      let fail!: (error: unknown) => void;
      const answer = new Promise<QueryResult<never>>((yes, no) => {
        resolve = yes;
        fail = no;
      });
      // Marked as handled only when it fails: a second promise for each statement would cost a tenth of its time.
      const reject = (error: unknown) => {
        answer.catch(ignore);
        fail(error);
      };

      const refused = refusal(text, values);
      if (refused) reject(refused);
      else if (lost) reject(lost);
      else if (!held) reject(new InboxError(givenBack.code, givenBack.message));
      else wire.send({ text, values, resolve, reject });
      return answer;
    },
    status: () => (lost ? "lost" : status),
    onLost(listener) {
      if (lost) listener(lost);
      else listeners.push(listener);
    },
    release() {
      giveBack(lost !== null || wire.unanswered() > 0 || (status !== "idle" && status !== "unknown"));
    },
    discard() {
      giveBack(true);
    },
  };

  function onLost(cause: unknown): void {
    if (lost || !held) return;
    lost = connectionLost(cause);
    const told = listeners;
    listeners = [];
    wire.close(lost);
    for (const listener of told) listener(lost);
  }

  function giveBack(close: boolean): void {
    if (!held) return;
    held = false;
    const busy = lost !== null || wire.unanswered() > 0;
    // Making an error takes its stack: not for every connection that goes back as it should.
    wire.close(
      lost ?? (busy ? connectionLost(new Error("it was closed while statements were running")) : givenBack),
    );
    // After release the pool listens itself; before it an error would have no listener.
    if (close) client.release(lost ?? new Error("The connection's state is in doubt."));
    else client.release();
    client.removeListener("error", onLost);
    client.removeListener("end", onEnd);
    // A goodbye waits behind a running statement, which may never end.
    if (close && busy) parts?.protocol.stream.destroy?.();
  }
}

/** Nobody waits for an answer that could be this. */
const givenBack = new InboxError(
  "connection-lost",
  "The connection was given back and cannot be used any more.",
);

function statusOf(letter: string | null | undefined): TransactionStatus {
  if (letter === "I") return "idle";
  if (letter === "T") return "open";
  if (letter === "E") return "failed";
  return "unknown";
}

function ignore(): void {
  // The caller may look at the promise later, or never; either way it must not end the process.
}

import type { PgClientLike } from "./pg-client.ts";
import type { PendingStatement, Wire, WireEvents } from "./pending.ts";

/**
 * Sends the statements of one client one after another by its public `query` alone: for `pg.native`, and for clients
 * wrapped by something that hides the protocol. pg itself deprecates a `query` while another one is running.
 */
export function pgChain(client: PgClientLike, events: WireEvents): Wire {
  const waiting: PendingStatement[] = [];
  let running: PendingStatement | null = null;
  let closedBy: Error | null = null;

  return {
    send(statement) {
      if (closedBy) return statement.reject(closedBy);
      waiting.push(statement);
      if (!running) void run();
    },
    unanswered: () => waiting.length + (running ? 1 : 0),
    close(error) {
      if (closedBy) return;
      closedBy = error;
      running?.reject(error);
      for (const statement of waiting.splice(0)) statement.reject(error);
    },
  };

  async function run(): Promise<void> {
    for (let statement = waiting.shift(); statement; statement = waiting.shift()) {
      running = statement;
      try {
        const answer = await client.query(statement.text, statement.values as unknown[] | undefined);
        const { rows, rowCount, command } = Array.isArray(answer) ? answer[answer.length - 1]! : answer;
        events.ready(client.getTransactionStatus?.() ?? undefined);
        statement.resolve({ rows: rows as never[], rowCount, command: command ?? "" });
      } catch (error) {
        if (endsTheConnection(error)) events.lost(error);
        else {
          // pg rejects before it has read the new status; an error aborts an open transaction in any case.
          const said = client.getTransactionStatus?.() ?? undefined;
          events.ready(said === "T" ? "E" : said);
          statement.reject(error);
        }
      }
      running = null;
    }
  }
}

// SQLSTATE classes after which the server closes: connection exceptions, shutdown, termination, session timeouts.
const fatal = /^(?:08...|57P0[12345]|25P0[34])$/;

/** An error without a SQLSTATE is the driver's own: a socket's, or the read timeout after which the statement may still run. */
function endsTheConnection(error: unknown): boolean {
  const { code, severity } = error as { code?: unknown; severity?: unknown };
  if (severity === "FATAL" || severity === "PANIC") return true;
  if (typeof code === "string" && /^[0-9A-Z]{5}$/.test(code)) return fatal.test(code);
  return !(error instanceof TypeError || error instanceof RangeError);
}

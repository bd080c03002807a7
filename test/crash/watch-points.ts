import type pg from "pg";
import { processAlive } from "../../src/local-postgres/process-alive.ts";
import { telemetry } from "../../src/telemetry/channels.ts";
import type { Point } from "./plan.ts";

const channels = {
  begun: telemetry.begun,
  claimed: telemetry.claimed,
  handled: telemetry.handled,
  committed: telemetry.committed,
  taken: telemetry.taken,
  outcome: telemetry.outcome,
  settled: telemetry.settled,
} as const;

/** What the driver writes at these points, and whether it still leaves before the listener is called. */
const writes = [
  { point: "commit sent", text: "commit", leaves: true },
  // Later ones are sent by the name under which this one is prepared.
  { point: "taking", text: ".take(", leaves: false },
  { point: "attempt", text: ".attempt (digest", leaves: false },
  { point: "quarantine", text: ".quarantine as q", leaves: false },
] as const;

/**
 * Calls `reached` whenever the process comes to a point. Those between handlers are told by telemetry channels, whose
 * subscribers run synchronously; those on the wire are seen in what the driver writes to its sockets, so this has to be
 * called before the pool connects. The point inside a handler is the handler's own to tell.
 */
export function watchPoints(pool: pg.Pool, reachedAny: (point: Point) => void): void {
  // The commit that is meant follows on handlers; putting off a message commits too.
  let handled = false;
  const reached = (point: Point): void => {
    if (point === "commit sent" && !handled) return;
    if (point === "handled") handled = true;
    // Pending messages may be taken between the two, on another connection.
    if (point === "commit sent" || point === "committed") handled = false;
    reachedAny(point);
  };
  for (const [point, channel] of Object.entries(channels)) channel.subscribe(() => reached(point as Point));
  // Lanes are given back with the next taking, which leaves in the turn of the outcomes.
  telemetry.outcome.subscribe(() => void setImmediate(() => reached("giving back")));
  pool.on("connect", (client) => {
    // Taking pending messages sends begin and commit in one write: no transaction is open before it.
    const inTransaction = (): boolean => client.getTransactionStatus() === "T";
    const { stream } = (client as unknown as { connection: { stream: NodeJS.WritableStream } }).connection;
    const write = stream.write.bind(stream) as (...parts: unknown[]) => boolean;
    const watched = (...parts: unknown[]): boolean => {
      const [bytes] = parts;
      const meant = writes.filter(
        ({ point, text }) =>
          Buffer.isBuffer(bytes) && bytes.includes(text) && (point !== "commit sent" || inTransaction()),
      );
      for (const { point, leaves } of meant) if (!leaves) reached(point);
      // The socket takes it at once, so it is with the kernel when this returns.
      const flushed = write(...parts);
      for (const { point, leaves } of meant) if (leaves) reached(point);
      return flushed;
    };
    Object.assign(stream, { write: watched });
  });
}

/** Kills the server and does not go on before it and its sessions are gone, so that the next statement meets nothing. */
export function killServer(postmaster: number, backends: readonly number[]): void {
  process.kill(postmaster, "SIGKILL");
  const deadline = Date.now() + 10_000;
  const tick = new Int32Array(new SharedArrayBuffer(4));
  while ([postmaster, ...backends].some(processAlive)) {
    if (Date.now() > deadline) throw new Error("The server's sessions outlived it by 10 s.");
    Atomics.wait(tick, 0, 0, 2);
  }
}

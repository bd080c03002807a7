import type pg from "pg";
import { processAlive } from "../../src/local-postgres/process-alive.ts";
import { telemetry } from "../../src/telemetry/channels.ts";
import type { Point } from "./plan.ts";

const channels = {
  begun: telemetry.begun,
  claimed: telemetry.claimed,
  handled: telemetry.handled,
  committed: telemetry.committed,
  outcome: telemetry.outcome,
  settled: telemetry.settled,
} as const;

/** What the driver writes at these points, and whether it still leaves. */
const writes = {
  "commit sent": { text: "commit", leaves: true },
  attempt: { text: ".attempt (digest", leaves: false },
  quarantine: { text: ".quarantine as q", leaves: false },
} as const;

/**
 * Calls `die` when the process first comes to the point. The points between handlers are told by telemetry channels,
 * whose subscribers run synchronously; those on the wire are seen in what the driver writes to its sockets. The point
 * inside a handler is the handler's own to call.
 */
export function dieAt(point: Point, pool: pg.Pool, die: () => void): void {
  if (point === "handler") return;
  let over = false;
  const once = (): void => {
    if (over) return;
    over = true;
    die();
  };
  if (!(point in writes)) {
    channels[point as keyof typeof channels].subscribe(once);
    return;
  }
  const { text, leaves } = writes[point as keyof typeof writes];
  pool.on("connect", (client) => {
    const { stream } = (client as unknown as { connection: { stream: NodeJS.WritableStream } }).connection;
    const write = stream.write.bind(stream) as (...parts: unknown[]) => boolean;
    const watched = (...parts: unknown[]): boolean => {
      const meant = Buffer.isBuffer(parts[0]) && parts[0].includes(text);
      if (meant && !leaves) once();
      // The socket takes it at once, so it is with the kernel when this returns.
      const flushed = write(...parts);
      if (meant && leaves) once();
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

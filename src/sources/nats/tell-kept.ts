import type { Intake } from "../source.ts";
import type { NatsJetStream } from "./client.ts";
import { streamKept } from "./stream-kept.ts";

/**
 * Tells how long the server keeps the stream, before anything is received. Whatever keeps it from being known is a warning
 * that says what to do; only what the run refuses is thrown (`window-too-short`).
 */
export async function tellKept(jetstream: NatsJetStream, stream: string, intake: Intake): Promise<void> {
  if (intake.kept === undefined) return;
  let kept: ReturnType<typeof streamKept>;
  try {
    if (jetstream.jetstreamManager === undefined) throw new Error("the client has no jetstreamManager");
    const manager = await jetstream.jetstreamManager(false);
    kept = streamKept((await manager.streams.info(stream)).config);
  } catch (error) {
    const why = error instanceof Error ? error.message || error.name : String(error);
    intake.warn(
      `How long NATS keeps ${stream} is not known (${why}), so it is not compared with how long identities are kept. ` +
        `Allow this user requests to $JS.API.STREAM.INFO.${stream}, or give the run \`kept\`.`,
    );
    return;
  }
  // What is acknowledged is gone from a queue, so one without an end brings nothing again.
  if (kept.kind === "queue" && kept.retentionMs === Number.POSITIVE_INFINITY) return;
  intake.kept([{ name: `nats:${stream}`, retentionMs: kept.retentionMs }]);
}

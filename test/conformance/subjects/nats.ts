import { jetstream } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { formats } from "../../../src/index.ts";
import { nats } from "../../../src/sources/nats/nats.ts";
import type { Source } from "../../../src/sources/source.ts";
import type { Subject } from "../subject.ts";

/** What a consumer process makes its source of. */
export interface NatsConfig {
  /** Through the proxy where the case cuts lines. */
  readonly servers: string;
  readonly stream: string;
  readonly consumer: string;
}

/** A stream with one durable pull consumer. The server keeps no order once a message is delivered again. */
export const subject: Subject = {
  name: "nats (JetStream)",
  module: import.meta.filename,
  order: "never",
  // Consumer processes have no use for what starts servers.
  open: async (t, needs) => (await import("./nats-place.ts")).openStream(t, needs),
};

export async function makeSource({ servers, stream, consumer }: NatsConfig): Promise<Source> {
  const connection = await connect({ servers, maxReconnectAttempts: -1, reconnectTimeWait: 100 });
  const identity = formats.header({ idHeader: "message-id", keyHeader: "key" });
  const source = nats({ jetstream: jetstream(connection), stream, consumer, identity });
  return {
    ...source,
    async close() {
      await source.close();
      await connection.close();
    },
  };
}

import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect, headers, nanos } from "@nats-io/transport-node";
import { setTimeout as sleep } from "node:timers/promises";
import type { TestContext } from "node:test";
import { isPublished } from "../../../src/sources/nats/nats.ts";
import { ownService, service } from "../../services/service.ts";
import { onTestEnd } from "../../support/cleanup.ts";
import { faultProxy } from "../../support/fault-proxy.ts";
import { lineThrough, type Needs, type Place, type Sent } from "../subject.ts";
import type { NatsConfig } from "./nats.ts";

// Also how long the messages of a consumer that died wait for the next one.
const leaseMs = 2_000;
const consumer = "billing";

/** A stream and a durable consumer of the case's own. */
export async function openStream(t: TestContext, needs: Needs): Promise<Place | undefined> {
  const own = needs.restart ? await ownService(t, "nats") : undefined;
  const facts = needs.restart ? own?.facts : await service(t, "nats");
  if (facts === undefined) return undefined;

  const connection = await connect({ servers: facts.url, maxReconnectAttempts: -1, reconnectTimeWait: 100 });
  onTestEnd(t, () => connection.close());
  const manager = await jetstreamManager(connection);
  const stream = needs.name;
  // Every copy is to reach the consumer: the server's own window looks at the publication, not at the message.
  await manager.streams.add({ name: stream, subjects: [`${stream}.>`] });
  onTestEnd(t, async () => void (await manager.streams.delete(stream).catch(() => false)));
  await manager.consumers.add(stream, {
    ...{ durable_name: consumer, ack_policy: "explicit", ack_wait: nanos(leaseMs) },
    max_ack_pending: 20_000,
  });
  const client = jetstream(connection);

  async function publish({ id, key, body, publication }: Sent): Promise<void> {
    const given = headers();
    given.set("key", key);
    if (id !== undefined) given.set("message-id", id);
    for (;;) {
      try {
        const answer = await client.publish(`${stream}.new`, body, { headers: given, msgID: publication });
        if (isPublished(answer)) return;
      } catch (error) {
        // Unanswered, as around a restart: the same publication is stored once, however often it is sent.
        if (!needs.restart) throw error;
        await sleep(100);
      }
    }
  }

  async function unsettled(): Promise<number> {
    for (;;) {
      try {
        const { num_pending, num_ack_pending } = await manager.consumers.info(stream, consumer);
        return num_pending + num_ack_pending;
      } catch (error) {
        // The server is being restarted.
        if (!needs.restart) throw error;
        await sleep(100);
      }
    }
  }

  const proxy = needs.line ? await faultProxy(t, facts) : undefined;
  const servers = proxy === undefined ? facts.url : `nats://${proxy.host}:${proxy.port}`;
  return {
    config: { servers, stream, consumer } satisfies NatsConfig,
    async publish(messages) {
      for (const message of messages) await publish(message);
    },
    unsettled,
    ...(proxy === undefined ? {} : { line: lineThrough(proxy, "+ACK") }),
    ...(own === undefined
      ? {}
      : {
          async restart() {
            await own.stop();
            await own.start();
          },
        }),
    ...(needs.shortLease ? { leaseMs } : {}),
  };
}

import { jetstream, jetstreamManager, type ConsumerConfig, type JetStreamClient } from "@nats-io/jetstream";
import { connect, headers, nanos, type NatsConnection } from "@nats-io/transport-node";
import { randomUUID } from "node:crypto";
import type { TestContext } from "node:test";
import { isRejected } from "../../../src/message/message.ts";
import { nats, type NatsOptions, type NatsSource } from "../../../src/sources/nats/nats.ts";
import type { Delivery, RunFacts, Settlement } from "../../../src/sources/source.ts";
import type { NatsFacts } from "../../services/facts.ts";
import { service } from "../../services/service.ts";
import { onTestEnd, type Scope } from "../../support/cleanup.ts";
import { testIntake } from "../../support/intake.ts";

/** A stream and a durable consumer of one test. */
export interface TestStream {
  readonly stream: string;
  readonly consumer: string;
  readonly connection: NatsConnection;
  readonly jetstream: JetStreamClient;
  publish(
    body: string,
    id?: string,
    more?: Readonly<Record<string, string>>,
  ): Promise<{ duplicate: boolean; seq: number; stream: string }>;
  /** Messages the server holds for the consumer. */
  held(): Promise<number>;
  deleteConsumer(): Promise<void>;
}

/** `undefined`: there is no server here, and the test was skipped. */
export async function testStream(
  t: TestContext,
  config: Partial<ConsumerConfig> = {},
): Promise<TestStream | undefined> {
  const facts = await service(t, "nats");
  return facts === undefined ? undefined : streamAt(t, facts, config);
}

export async function streamAt(
  t: Scope,
  facts: NatsFacts,
  config: Partial<ConsumerConfig> = {},
): Promise<TestStream> {
  const stream = `inbox-${randomUUID()}`;
  const consumer = "billing";
  const connection = await connect({ servers: facts.url, maxReconnectAttempts: -1, reconnectTimeWait: 100 });
  onTestEnd(t, () => connection.close());
  const manager = await jetstreamManager(connection);
  await manager.streams.add({ name: stream, subjects: [`${stream}.>`], duplicate_window: nanos(60_000) });
  onTestEnd(t, async () => void (await manager.streams.delete(stream).catch(() => false)));
  const defaults = { durable_name: consumer, ack_policy: "explicit", ack_wait: nanos(30_000) } as const;
  await manager.consumers.add(stream, { ...defaults, ...config });
  const client = jetstream(connection);
  return {
    ...{ stream, consumer, connection, jetstream: client },
    async publish(body, id, more = {}) {
      const given = headers();
      for (const [name, value] of Object.entries(more)) given.set(name, value);
      const msgID = id === undefined ? {} : { msgID: id };
      return client.publish(`${stream}.new`, body, { ...msgID, headers: given });
    },
    async held() {
      const { num_pending, num_ack_pending } = await manager.consumers.info(stream, consumer);
      return num_pending + num_ack_pending;
    },
    deleteConsumer: async () => void (await manager.consumers.delete(stream, consumer)),
  };
}

/** A source under a test's hand: what it delivers waits until the test settles it. */
export interface Driven {
  readonly source: NatsSource;
  readonly warnings: readonly string[];
  /** Resolves when the source has ended by itself. */
  readonly ended: Promise<Error | undefined>;
  /** The next delivery; rejects where none comes in time. */
  next(): Promise<Delivery>;
  readonly untaken: number;
  settle(delivery: Delivery, settlement?: Settlement): Promise<void>;
}

const patienceMs = 60_000;

export async function drive(
  t: Scope,
  at: TestStream,
  options: Partial<NatsOptions> = {},
  facts: Partial<RunFacts> = {},
): Promise<Driven> {
  const { stream, consumer, jetstream } = at;
  const source = nats({ stream, consumer, jetstream, ...options });
  const arrived: Delivery[] = [];
  const warnings: string[] = [];
  let look: () => void = () => undefined;
  let end: (error?: Error) => void = () => undefined;
  const ended = new Promise<Error | undefined>((resolve) => (end = resolve));
  onTestEnd(t, () => source.close());
  await source.start(
    testIntake(
      {
        async deliver(list) {
          arrived.push(...list);
          look();
        },
        end,
        warn: (text) => void warnings.push(text),
      },
      facts,
    ),
  );
  return {
    ...{ source, warnings, ended },
    async next() {
      for (;;) {
        const delivery = arrived.shift();
        if (delivery !== undefined) return delivery;
        await new Promise<void>((resolve, reject) => {
          const late = (): void => reject(new Error(`No delivery came. Warnings: ${warnings.join(" | ")}`));
          const timer = setTimeout(late, patienceMs);
          look = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      }
    },
    get untaken() {
      return arrived.length;
    },
    settle: (delivery, settlement = { kind: "ack" }) => source.settle([[delivery, settlement]]),
  };
}

export const idOf = ({ received }: Delivery): string | undefined =>
  isRejected(received) ? undefined : received.id;

import { connect, type ChannelModel, type ConfirmChannel, type Options } from "amqplib";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import type { TestContext } from "node:test";
import { Connection } from "rabbitmq-client";
import { isRejected } from "../../../src/message/message.ts";
import type { Delivery, Intake, RunFacts, Settlement } from "../../../src/sources/source.ts";
import {
  rabbitmq,
  type RabbitmqClient,
  type RabbitmqOptions,
  type RabbitmqSource,
} from "../../../src/sources/rabbitmq/rabbitmq.ts";
import { service } from "../../services/service.ts";
import { onTestEnd, type Scope } from "../../support/cleanup.ts";
import { testIntake } from "../../support/intake.ts";

/** Both clients, each as a user would give it. */
export const clients = {
  amqplib:
    (url: string): RabbitmqClient =>
    () =>
      connect(url),
  "rabbitmq-client":
    (url: string): RabbitmqClient =>
    () =>
      new Connection({ url, retryLow: 50, retryHigh: 500 }),
} as const satisfies Record<string, (url: string) => RabbitmqClient>;

export type ClientName = keyof typeof clients;

export const clientNames = Object.keys(clients) as ClientName[];

/** A queue of one test, and a connection that is not the source's. */
export interface TestQueue {
  readonly queue: string;
  readonly url: string;
  readonly host: string;
  readonly port: number;
  readonly admin: ConfirmChannel;
  /** Resolves when the broker has stored it. */
  publish(body: string | Buffer, options?: Options.Publish): Promise<void>;
  /** Messages that are ready; none of those in some consumer's hand. */
  ready(): Promise<number>;
}

/** `undefined`: there is no broker here, and the test was skipped. */
export async function testQueue(t: TestContext, args: object = {}): Promise<TestQueue | undefined> {
  const facts = await service(t, "rabbitmq");
  return facts === undefined ? undefined : queueAt(t, facts, args);
}

export async function queueAt(
  t: Scope,
  facts: { readonly url: string; readonly host: string; readonly port: number },
  args: object = {},
  queue = `inbox-test-${randomUUID()}`,
): Promise<TestQueue> {
  const connection: ChannelModel = await connect(facts.url);
  connection.on("error", () => undefined);
  onTestEnd(t, () => connection.close().catch(() => undefined));
  const admin = await connection.createConfirmChannel();
  admin.on("error", () => undefined);
  await admin.assertQueue(queue, { durable: true, arguments: args });
  onTestEnd(t, async () => void (await admin.deleteQueue(queue).catch(() => undefined)));
  return {
    ...{ queue, admin, url: facts.url, host: facts.host, port: facts.port },
    async publish(body, options = {}) {
      admin.sendToQueue(queue, Buffer.from(body), { persistent: true, ...options });
      await admin.waitForConfirms();
    },
    ready: async () => (await admin.checkQueue(queue)).messageCount,
  };
}

/** A source under a test's hand: what it delivers waits until the test settles it. */
export interface Driven {
  readonly source: RabbitmqSource;
  readonly warnings: readonly string[];
  /** Resolves when the source has ended by itself. */
  readonly ended: Promise<Error | undefined>;
  /** The next delivery; rejects where none comes in a minute. */
  next(): Promise<Delivery>;
  take(count: number): Promise<Delivery[]>;
  /** Deliveries that nobody took. */
  readonly untaken: number;
  settle(delivery: Delivery, settlement?: Settlement): Promise<void>;
}

const patienceMs = 60_000;

/** What is known of queues of these tests, so that the source has nothing to warn of. */
export const classic = { type: "classic" } as const;

export async function drive(
  t: Scope,
  options: RabbitmqOptions,
  facts: Partial<RunFacts> = {},
): Promise<Driven> {
  const source = rabbitmq({
    reconnectDelayMs: 20,
    maxReconnectDelayMs: 500,
    queueFacts: classic,
    ...options,
  });
  const arrived: Delivery[] = [];
  const warnings: string[] = [];
  const waiting: (() => void)[] = [];
  let end: (error?: Error) => void = () => undefined;
  const ended = new Promise<Error | undefined>((resolve) => (end = resolve));
  const intake: Intake = testIntake(
    {
      async deliver(list) {
        arrived.push(...list);
        for (const look of waiting.splice(0)) look();
      },
      end,
      warn: (text) => void warnings.push(text),
    },
    facts,
  );
  onTestEnd(t, () => source.close());
  await source.start(intake);
  const next = async (): Promise<Delivery> => {
    const deadline = performance.now() + patienceMs;
    for (;;) {
      const delivery = arrived.shift();
      if (delivery !== undefined) return delivery;
      const left = deadline - performance.now();
      if (left <= 0) throw new Error(`No delivery came. Warnings: ${warnings.join(" | ")}`);
      let timer: NodeJS.Timeout | undefined;
      await new Promise<void>((resolve) => {
        timer = setTimeout(resolve, left);
        waiting.push(resolve);
      });
      clearTimeout(timer);
    }
  };
  return {
    ...{ source, warnings, ended, next },
    async take(count) {
      const list: Delivery[] = [];
      while (list.length < count) list.push(await next());
      return list;
    },
    get untaken() {
      return arrived.length;
    },
    settle: (delivery, settlement = { kind: "ack" }) => source.settle([[delivery, settlement]]),
  };
}

export const idOf = ({ received }: Delivery): string | undefined =>
  isRejected(received) ? undefined : received.id;

/** Resolves when it holds; looked at every few milliseconds, for what nobody tells. */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + patienceMs;
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`It did not come to pass: ${what}`);
    await once(AbortSignal.timeout(10), "abort");
  }
}

import { connect, type ConfirmChannel } from "amqplib";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { TestContext } from "node:test";
import type { RabbitmqFacts } from "../../services/facts.ts";
import { ownService, service, type OwnService } from "../../services/service.ts";
import { onTestEnd, type Scope } from "../../support/cleanup.ts";
import { faultProxy } from "../../support/fault-proxy.ts";
import { requireOrSkip } from "../../support/require-or-skip.ts";
import type { QueueType, RabbitmqConfig } from "./rabbitmq-source.ts";
import { lineThrough, type Needs, type Place, type Sent } from "../subject.ts";

const leaseMs = 2_000;
const tickMs = 100;

/** A queue of the case's own. */
export async function openQueue(
  t: TestContext,
  needs: Needs,
  suite: Scope,
  type: QueueType,
): Promise<Place | undefined> {
  const own = needs.restart ? await ownService(t, "rabbitmq") : undefined;
  const facts = needs.restart
    ? own?.facts
    : needs.shortLease
      ? (await impatientBroker(t, suite))?.facts
      : await service(t, "rabbitmq");
  if (facts === undefined) return undefined;
  const { management } = facts;
  const told = "only the management API tells what is in consumers' hands, and this broker has none";
  if (!requireOrSkip(t, management !== undefined, told) || management === undefined) return undefined;

  const queue = needs.name;
  const publisher = publisherOf(facts.url);
  onTestEnd(t, async () => {
    await (await publisher.channel()).deleteQueue(queue).catch(() => undefined);
    await publisher.close();
  });
  await (
    await publisher.channel()
  ).assertQueue(queue, { durable: true, arguments: { "x-queue-type": type } });
  const proxy = needs.line ? await faultProxy(t, facts) : undefined;
  const url = new URL(facts.url);
  if (proxy !== undefined) url.host = `${proxy.host}:${proxy.port}`;
  // A quorum queue gives nothing back while the consumer owes the answer to the end of its channel.
  if (needs.shortLease && type === "quorum") url.searchParams.set("heartbeat", "1");
  return {
    config: {
      ...{ url: url.href, queue, type },
      ...(needs.shortLease ? { ackTimeoutMs: leaseMs } : {}),
    } satisfies RabbitmqConfig,
    publish: async (messages) => publish(await publisher.channel(), queue, messages),
    unsettled: () => unsettled(management, queue, type),
    // basic.ack on the wire: class 60, method 80.
    ...(proxy === undefined ? {} : { line: lineThrough(proxy, "\u0000<\u0000P") }),
    ...(own === undefined || !needs.restart ? {} : { restart: () => restart(own) }),
    ...(needs.shortLease ? { leaseMs } : {}),
  };
}

interface Publisher {
  channel(): Promise<ConfirmChannel>;
  close(): Promise<void>;
}

/** A connection that is made again after the broker was. */
function publisherOf(url: string): Publisher {
  let current: Promise<{ channel: ConfirmChannel; close: () => Promise<void> }> | undefined;
  async function open(): Promise<{ channel: ConfirmChannel; close: () => Promise<void> }> {
    const connection = await connect(url);
    const forget = (): void => void (current = undefined);
    connection.on("error", forget);
    connection.on("close", forget);
    const channel = await connection.createConfirmChannel();
    channel.on("error", () => undefined);
    return { channel, close: () => connection.close() };
  }
  return {
    channel: async () => (await (current ??= open())).channel,
    close: async () => (await current?.catch(() => undefined))?.close().catch(() => undefined),
  };
}

async function publish(channel: ConfirmChannel, queue: string, messages: readonly Sent[]): Promise<void> {
  for (const { id, key, body } of messages) {
    channel.sendToQueue(queue, Buffer.from(body), {
      ...{ persistent: true, headers: { key } },
      ...(id === undefined ? {} : { messageId: id }),
    });
  }
  await channel.waitForConfirms();
}

/** Counted now, not when statistics were last collected; those of quorum queues are up to a tick old. */
async function unsettled(management: string, queue: string, type: QueueType): Promise<number> {
  const count = await total(management, queue);
  if (count > 0 || type === "classic") return count;
  await sleep(3 * tickMs);
  return total(management, queue);
}

async function total(management: string, queue: string): Promise<number> {
  const path = `${management}/api/queues/%2F?disable_stats=true&enable_queue_totals=true`;
  const authorization = `Basic ${Buffer.from("guest:guest").toString("base64")}`;
  const response = await fetch(path, { headers: { authorization } });
  const queues = (await response.json()) as readonly { readonly name: string; readonly messages?: number }[];
  const found = queues.find(({ name }) => name === queue)?.messages;
  // While the broker starts its queues are not all there.
  return found ?? 1;
}

// One a suite, for all its cases of a short lease.
const impatient = new WeakMap<Scope, Promise<OwnService<RabbitmqFacts> | undefined>>();

/** A broker that soon takes back what is not acknowledged. */
function impatientBroker(t: TestContext, suite: Scope): Promise<OwnService<RabbitmqFacts> | undefined> {
  const known = impatient.get(suite);
  if (known !== undefined) return known;
  const made = ownService(t, "rabbitmq", suite).then(async (own) => {
    if (own === undefined) impatient.delete(suite);
    else await shortenLease(own);
    return own;
  });
  impatient.set(suite, made);
  return made;
}

/** As the documentation says for all but tests: minutes, looked at once a minute. */
async function shortenLease(own: OwnService<RabbitmqFacts>): Promise<void> {
  const settings = `{quorum_tick_interval, ${tickMs}}, {consumer_timeout, ${leaseMs}}, {channel_tick_interval, ${tickMs}}`;
  writeFileSync(join(own.directory, "advanced.config"), `[{rabbit, [${settings}]}].\n`);
  await own.restart();
}

async function restart(own: OwnService<RabbitmqFacts>): Promise<void> {
  await own.stop();
  await own.start();
}

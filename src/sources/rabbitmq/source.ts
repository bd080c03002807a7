import { InboxError } from "../../errors.ts";
import type { Received } from "../../message/message.ts";
import { createItemReader } from "../read-items.ts";
import type { Delivery, Intake, Settlement, Source } from "../source.ts";
import type { AmqpChannel, AmqpClient, AmqpMessage } from "./client.ts";
import { detectClient } from "./detect-client.ts";
import { errorText } from "./error-text.ts";
import { createHeld } from "./held.ts";
import type { Link, Unsettled } from "./link.ts";
import { askManagement } from "./management.ts";
import { rabbitmqSettings, type RabbitmqOptions } from "./options.ts";
import { defaultAcknowledgementTimeoutMs, queueWarnings, type QueueFacts } from "./queue-facts.ts";
import { deliveryCount, isFromStream, rawDelivery } from "./read-message.ts";
import { createSubscription, type Subscription } from "./subscription.ts";
import { createWindow, fixedWindow, type Window } from "./window.ts";
import { within } from "./within.ts";

/** What a source has in hand, and what happened to it. */
export interface RabbitmqProgress {
  /** Delivered by the broker and not settled, held ones too. */
  readonly unsettled: number;
  readonly unsettledBytes: number;
  /** Messages that wait here for a retry. */
  readonly held: number;
  /** The present prefetch. */
  readonly prefetch: number;
  /** Settlements that came when their channel was gone. Their messages are delivered again, as duplicates. */
  readonly lateSettlements: number;
  /** How many channels were lost. */
  readonly lostChannels: number;
  /** Parts of deliveries that are no messages and need no handling, by reason. */
  readonly ignored: Readonly<Record<string, number>>;
}

/** A source of one queue that tells what it has in hand. */
export interface RabbitmqSource extends Source {
  progress(): RabbitmqProgress;
}

/** One message of a broker's delivery. */
interface Part {
  readonly link: Link;
  readonly unsettled: Unsettled;
  readonly received: Received;
}

interface Held {
  readonly part: Part;
  /** It waits for the end of its time here, not for its retry. */
  readonly giveBack: boolean;
}

const maxBatch = 500;
// A message must be settled well before the broker loses patience.
const heldShare = 0.8;
const lagTimeoutMs = 5_000;
const longestGoodbyeMs = 5_000;
// RabbitMQ looks through what is unsettled with each acknowledgement that is out of turn: 8,000 made it a third slower.
const mostAhead = 4_000;
// Beside what the run has in hand there is room for what is done and waits to be acknowledged in one frame.
const aheadOfRun = 2;
// A window that cannot grow is to be large enough for a lane or two.
const aheadOfSingle = 500;
// How often it is looked whether acknowledgements have waited long enough for those before them.
const lookAtUnsentMs = 50;

/**
 * Messages of one RabbitMQ queue, with `rabbitmq-client` or `amqplib`. An acknowledgement is sent on the channel of its
 * delivery or not at all. A message that is to be retried waits here, unacknowledged, since the broker has no delay.
 * Comes back by itself after every loss of channel or connection. Throws `invalid-option`; `start` rejects with
 * `source-failed` where the broker cannot be reached or has no such queue.
 */
export function rabbitmq(options: RabbitmqOptions): RabbitmqSource {
  const settings = rabbitmqSettings(options);
  const { queue, now } = settings;
  const reader = createItemReader(settings.format);
  const inHand = new Map<Delivery, Part>();
  const held = createHeld<Held>(due);
  let waiting: Delivery[] = [];
  let window: Window = fixedWindow(1);
  let intake: Intake | undefined;
  let client: AmqpClient | undefined;
  let subscription: Subscription | undefined;
  let asking: Promise<AmqpChannel> | undefined;
  let ackTimeoutMs = defaultAcknowledgementTimeoutMs;
  let lateSettlements = 0;
  const unsent = new Set<Link>();
  let sending: NodeJS.Timeout | undefined;
  let stopped = false;
  let pumping = false;

  function receive(link: Link, message: AmqpMessage): void {
    if (isFromStream(message)) {
      const text = `${queue} is a stream: it keeps no account of what was acknowledged, so it is no source.`;
      return intake!.end(new InboxError("source-failed", text));
    }
    const messages = reader.read(rawDelivery(message, settings, warnOnce));
    const unsettled = link.take(message, Math.max(1, messages.length), now());
    window.arrived(unsettled.bytes);
    if (messages.length === 0) {
      link.settle(unsettled, false);
      lateSettlements += link.flush(true);
    }
    const redelivered = message.redelivered || deliveryCount(message) > 0;
    for (const received of messages) handOver({ link, unsettled, received }, redelivered);
    adapt();
  }

  const warnOnce = (text: string): void => intake!.warn(text);

  function handOver(part: Part, redelivered: boolean): void {
    const delivery: Delivery = { received: part.received, redelivered };
    inHand.set(delivery, part);
    waiting.push(delivery);
    if (!pumping && !stopped) void pump();
  }

  /** Hands over what has arrived, in its order, as far as the runner has room. */
  async function pump(): Promise<void> {
    pumping = true;
    // What arrives in the same turn is handed over together.
    await Promise.resolve();
    const atOnce = Math.min(maxBatch, intake!.facts.maxInHand);
    while (waiting.length > 0 && !stopped) {
      const list = waiting.length <= atOnce ? waiting : waiting.slice(0, atOnce);
      waiting = waiting.length <= atOnce ? [] : waiting.slice(atOnce);
      await intake!.deliver(list);
    }
    pumping = false;
  }

  /** The broker delivers everything again that was not settled on the link. */
  function forget(link: Link): void {
    held.drop(({ part }) => part.link === link);
    for (const delivery of waiting) if (inHand.get(delivery)?.link === link) inHand.delete(delivery);
    waiting = waiting.filter((delivery) => inHand.has(delivery));
  }

  function adapt(): void {
    const link = subscription?.link;
    if (link === undefined || stopped) return;
    const { unsettled, unsettledBytes } = link;
    if (window.move({ unsettled, unsettledBytes, held: held.count })) subscription!.resize();
  }

  function carryOut(part: Part, settlement: Settlement): void {
    const { link, unsettled } = part;
    if (settlement.kind === "retry" && !stopped && link.alive) return hold(part, settlement.afterMs);
    link.settle(unsettled, settlement.kind !== "ack");
  }

  function hold(part: Part, afterMs: number): void {
    const leftMs = Math.max(0, part.unsettled.at + ackTimeoutMs * heldShare - now());
    part.unsettled.waited = true;
    if (afterMs > leftMs) intake!.warn(tooLate(ackTimeoutMs));
    held.add({ part, giveBack: afterMs > leftMs }, Math.min(afterMs, leftMs));
  }

  /** Given back it comes at once, but as a delivery that may wait as long again. */
  function due({ part, giveBack }: Held): void {
    if (!giveBack) return handOver(part, true);
    part.link.settle(part.unsettled, true);
    lateSettlements += part.link.flush(true);
  }

  function settle(settlements: readonly (readonly [Delivery, Settlement])[]): void {
    const links = new Set<Link>();
    for (const [delivery, settlement] of settlements) {
      const part = inHand.get(delivery);
      if (part === undefined) continue;
      inHand.delete(delivery);
      links.add(part.link);
      carryOut(part, settlement);
    }
    send(links);
  }

  function send(links: Iterable<Link>): void {
    for (const link of links) {
      lateSettlements += link.flush(stopped);
      if (link.waiting > 0) unsent.add(link);
      else unsent.delete(link);
    }
    if (unsent.size > 0) sending ??= setTimeout(sendUnsent, lookAtUnsentMs);
    adapt();
  }

  function sendUnsent(): void {
    clearTimeout(sending);
    sending = undefined;
    send(unsent);
  }

  async function checkQueue(): Promise<QueueFacts> {
    const { management, queueFacts } = settings;
    if (management === undefined) return queueFacts;
    try {
      return { ...(await askManagement(management, queue)), ...given(queueFacts) };
    } catch (error) {
      intake!.warn(`The management API could not be asked about ${queue}: ${errorText(error)}`);
      return queueFacts;
    }
  }

  async function start(runner: Intake): Promise<void> {
    intake = runner;
    const { maxInHand, maxInHandBytes, handlerTimeoutMs } = runner.facts;
    const told = await checkQueue();
    ackTimeoutMs = told.acknowledgementTimeoutMs ?? ackTimeoutMs;
    if (told.type === "stream") {
      throw new InboxError("source-failed", `${queue} is a stream, which settles nothing; it is no source.`);
    }
    const fixed =
      settings.prefetch ??
      (told.singleActiveConsumer === true ? Math.min(maxInHand, aheadOfSingle) : undefined);
    window =
      fixed === undefined
        ? createWindow({
            ...{
              most: Math.min(maxInHand * aheadOfRun, mostAhead),
              mostBytes: maxInHandBytes,
              mostHeld: settings.maxHeld,
            },
            mostInHandMs: ackTimeoutMs,
          })
        : fixedWindow(fixed);
    client = detectClient(settings.client, settings.answerTimeoutMs, {
      blocked: (reason) =>
        runner.warn(
          `The broker blocks this connection (${errorText(reason)}). Where it also publishes, acknowledgements may wait, ` +
            "too: give the source a connection of its own.",
        ),
    });
    subscription = createSubscription({
      ...{ settings, client, size: () => window.size, message: receive, lost: forget },
      settled: ({ at, waited }) => window.settled(waited ? 0 : now() - at),
      warn: (text) => runner.warn(text),
      fail: (error) => runner.end(error),
    });
    try {
      await subscription.start();
    } catch (error) {
      const text = `Cannot take messages from the queue ${queue}: ${errorText(error)}`;
      throw new InboxError("source-failed", text, { cause: error });
    }
    const facts = { ...told, version: told.version ?? client.version() };
    for (const text of queueWarnings(facts, handlerTimeoutMs)) runner.warn(text);
  }

  async function withdraw(): Promise<void> {
    await subscription?.stop();
    const parts = held.drop(() => true).map(({ part }) => part);
    for (const delivery of waiting.splice(0)) {
      const part = inHand.get(delivery);
      inHand.delete(delivery);
      if (part !== undefined) parts.push(part);
    }
    const links = new Set(parts.map(({ link }) => link));
    for (const { link, unsettled } of parts) link.settle(unsettled, true);
    for (const link of links) link.flush(true);
    sendUnsent();
  }

  let withdrawn: Promise<void> | undefined;
  const stop = (): Promise<void> => {
    stopped = true;
    return (withdrawn ??= withdraw());
  };

  let closed: Promise<void> | undefined;
  async function close(): Promise<void> {
    await stop();
    await subscription?.close();
    const quietly = (promise: Promise<void> | undefined, what: string): Promise<void> =>
      within(promise ?? Promise.resolve(), Math.min(settings.answerTimeoutMs, longestGoodbyeMs), what).catch(
        () => undefined,
      );
    await quietly(
      asking?.then((channel) => channel.close()),
      "closing a channel",
    );
    await quietly(client?.close(), "closing the connection");
  }

  async function lag(): Promise<number | undefined> {
    const link = subscription?.link;
    if (link === undefined || client === undefined || stopped) return undefined;
    // A channel of its own: a queue that is gone closes the channel of whoever asks for it.
    const channel = (asking ??= client.open({ message: () => undefined, lost: () => (asking = undefined) }));
    try {
      const ready = await within(
        channel.then((open) => open.count(queue)),
        lagTimeoutMs,
        "counting",
      );
      return ready + link.unsettled;
    } catch {
      if (asking === channel) asking = undefined;
      void channel.then((open) => open.close()).catch(() => undefined);
      return undefined;
    }
  }

  return {
    name: `rabbitmq:${queue}`,
    start,
    settle: async (settlements) => settle(settlements),
    stop,
    close: () => (closed ??= close()),
    lag,
    progress: () => ({
      unsettled: subscription?.link?.unsettled ?? 0,
      unsettledBytes: subscription?.link?.unsettledBytes ?? 0,
      held: held.count,
      prefetch: window.size,
      lateSettlements,
      lostChannels: subscription?.lost ?? 0,
      ignored: reader.ignored(),
    }),
  };
}

const tooLate = (ackTimeoutMs: number): string =>
  `A retry was asked for later than a message may wait without an acknowledgement (${ackTimeoutMs} ms): it goes back to ` +
  "the queue before, and comes again sooner. Store-first mode keeps retries in the database.";

/** What is undefined does not hide what the broker says. */
const given = (facts: QueueFacts): QueueFacts =>
  Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined));

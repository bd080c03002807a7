import { setTimeout as sleep } from "node:timers/promises";
import { InboxError } from "../../errors.ts";
import { printable } from "../../message/show-value.ts";
import { isFault, type RawDelivery } from "../../message/formats/format.ts";
import { headerValue } from "../../message/formats/header-value.ts";
import { createItemReader } from "../read-items.ts";
import type { Delivery, Intake, Settlement, Source } from "../source.ts";
import { checkConsumer } from "./check-consumer.ts";
import type { NatsConsumer, NatsMessage } from "./client.ts";
import { natsSettings, type NatsOptions } from "./options.ts";
import { tellKept } from "./tell-kept.ts";

/** What a source has in hand, and what happened to it. */
export interface NatsProgress {
  /** Delivered by the server and not settled. */
  readonly unsettled: number;
  /** Acknowledgements that the server did not confirm in time; those messages may come again, as duplicates. */
  readonly unconfirmed: number;
  /** Parts of deliveries that are no messages and need no handling, by reason. */
  readonly ignored: Readonly<Record<string, number>>;
}

/** A source of one JetStream consumer that tells what it has in hand. */
export interface NatsSource extends Source {
  progress(): NatsProgress;
}

/** One delivery of the server. */
interface Unsettled {
  readonly message: NatsMessage;
  /** Messages in it that have no settlement yet. */
  open: number;
  /** It is to come again, after so many milliseconds. */
  againMs: number | undefined;
  quarantined: boolean;
}

// The shortest that the client allows. A pull is left to end by itself, so that nothing it brought is forgotten.
const pullMs = 1_000;
const pullGraceMs = 1_500;
const firstBatch = 64;
// Of what the runner takes in hand: the rest is what it has in hand already.
const pullShare = 4;
const longestPauseMs = 10_000;

/**
 * Messages of a durable JetStream pull consumer. An acknowledgement counts when the server has confirmed it; what is in
 * hand is extended by `working()`, a retry is the server's own delayed redelivery, and what went to quarantine is
 * terminated. Throws `invalid-option`; `start` rejects with `source-failed` where the consumer is not there or does not
 * have explicit acknowledgement.
 */
export function nats(options: NatsOptions): NatsSource {
  const settings = natsSettings(options);
  const { jetstream, now } = settings;
  const reader = createItemReader(settings.format);
  const parts = new Map<Delivery, Unsettled>();
  const unsettled = new Set<Unsettled>();
  const stopping = new AbortController();
  let intake: Intake | undefined;
  let consumer: NatsConsumer | undefined;
  let pulling: Promise<void> = Promise.resolve();
  let largest = 0;
  let unconfirmed = 0;
  let outages = 0;

  function take(message: NatsMessage): readonly Delivery[] {
    largest = Math.max(largest * 0.9, message.data.byteLength);
    const entry: Unsettled = { message, open: 0, againMs: undefined, quarantined: false };
    const { timestampNanos } = message;
    const brokerTime = timestampNanos === undefined ? undefined : Number(timestampNanos / 1_000_000n);
    const deliveries = reader.read(rawDelivery(message)).map((received): Delivery => {
      entry.open++;
      const delivery = { received, redelivered: message.redelivered, brokerTime };
      parts.set(delivery, entry);
      return delivery;
    });
    if (entry.open > 0) unsettled.add(entry);
    else void confirm([message]);
    return deliveries;
  }

  function rawDelivery(message: NatsMessage): RawDelivery {
    const headers = message.headers === undefined ? undefined : [...message.headers];
    const { subject, data } = message;
    return { body: data, headers, channel: subject, tenant: settings.tenant, key: keyOf(message, headers) };
  }

  /** For order only: what is no text is no key. */
  function keyOf(message: NatsMessage, headers: unknown): unknown {
    const { key } = settings;
    if (key === undefined) return undefined;
    if (key === "subject") return message.subject;
    if (typeof key === "function") {
      try {
        return key(message);
      } catch (error) {
        intake!.warn(`The key function threw, so there is no order for that message: ${textOf(error)}`);
        return undefined;
      }
    }
    const value = headerValue(headers, key.header);
    return isFault(value) ? undefined : value;
  }

  function batchSize(): number {
    const { maxInHand, maxInHandBytes } = intake!.facts;
    const fits = largest === 0 ? firstBatch : Math.floor(maxInHandBytes / pullShare / largest);
    return Math.max(1, Math.min(settings.maxBatch, maxInHand, fits));
  }

  /** One pull, handed over as it comes; resolves when there is room for another. */
  async function pull(from: NatsConsumer): Promise<void> {
    const messages = await from.fetch({ max_messages: batchSize(), expires: pullMs });
    let room: Promise<void> = Promise.resolve();
    // A pull whose connection was lost has no end: the server knows nothing of it any more.
    const overdue = setTimeout(() => void messages.close().catch(() => undefined), pullMs + pullGraceMs);
    try {
      for await (const message of messages) {
        // Never handed over: whoever pulls next may have it at once.
        if (stopping.signal.aborted) message.nak();
        else room = intake!.deliver(take(message));
      }
    } finally {
      clearTimeout(overdue);
    }
    await room;
  }

  async function pullOn(): Promise<void> {
    let missingSince: number | undefined;
    let failures = 0;
    while (!stopping.signal.aborted) {
      try {
        consumer ??= await jetstream.consumers.get(settings.stream, settings.consumer);
        await pull(consumer);
        failures = 0;
        missingSince = undefined;
      } catch (error) {
        if (stopping.signal.aborted) return;
        const text = textOf(error);
        if (
          /closed connection|connection closed/i.test(`${nameOf(error)} ${text}`) ||
          nameOf(error) === "ClosedConnectionError"
        ) {
          return end(
            `The connection was closed: ${text}. Its reconnection is the client's own (maxReconnectAttempts).`,
            error,
          );
        }
        if (failures === 0) outages++;
        missingSince = /not found|deleted|no responders/i.test(text) ? (missingSince ?? now()) : undefined;
        if (missingSince !== undefined && now() - missingSince >= settings.missingConsumerTimeoutMs) {
          return end(`The consumer is gone and did not come back: ${text}`, error);
        }
        intake!.warn(`Pulling failed (${outages} times so far): ${text}. Trying on.`);
        consumer = undefined;
        await pause(failures++);
      }
    }
  }

  const end = (text: string, cause: unknown): void =>
    intake!.end(new InboxError("source-failed", text, { cause }));

  async function pause(failures: number): Promise<void> {
    const ms = Math.min(longestPauseMs, 100 * 2 ** Math.min(failures, 10)) * (0.5 + settings.random() / 2);
    await sleep(ms, undefined, { signal: stopping.signal }).catch(() => undefined);
  }

  /** Acknowledges, and waits until the server has said that it knows. */
  async function confirm(messages: readonly NatsMessage[]): Promise<void> {
    const options = { timeout: settings.ackTimeoutMs };
    const answers = await Promise.allSettled(messages.map(async (message) => message.ackAck(options)));
    const failed = answers.filter(({ status }) => status === "rejected");
    if (failed.length === 0) return;
    unconfirmed += failed.length;
    const reason: unknown = (failed[0] as PromiseRejectedResult).reason;
    intake!.warn(
      `The server did not confirm acknowledgements; those messages may come again: ${textOf(reason)}`,
    );
  }

  async function settle(settlements: readonly (readonly [Delivery, Settlement])[]): Promise<void> {
    const acks: NatsMessage[] = [];
    for (const [delivery, settlement] of settlements) {
      const entry = parts.get(delivery);
      if (entry === undefined) continue;
      parts.delete(delivery);
      if (settlement.kind === "ack") entry.quarantined ||= settlement.quarantined === true;
      else entry.againMs = Math.max(entry.againMs ?? 0, settlement.kind === "retry" ? settlement.afterMs : 0);
      if (--entry.open > 0) continue;
      unsettled.delete(entry);
      // The server has no word for "when the others are done": a part that is settled comes again as a duplicate.
      if (entry.againMs !== undefined) entry.message.nak(entry.againMs);
      else if (entry.quarantined) entry.message.term();
      else acks.push(entry.message);
    }
    await confirm(acks);
  }

  async function start(runner: Intake): Promise<void> {
    intake = runner;
    try {
      consumer = await jetstream.consumers.get(settings.stream, settings.consumer);
      const info = await consumer.info();
      for (const text of checkConsumer(info, runner.facts.extendEveryMs)) runner.warn(text);
    } catch (error) {
      if (error instanceof InboxError) throw error;
      const text = `Cannot pull from the consumer ${settings.consumer} of ${settings.stream}: ${textOf(error)}`;
      throw new InboxError("source-failed", text, { cause: error });
    }
    await tellKept(jetstream, settings.stream, runner);
    pulling = pullOn();
  }

  async function stop(): Promise<void> {
    stopping.abort();
    await pulling;
  }

  async function close(): Promise<void> {
    await stop();
    // What was sent before the answer to this has been read by the server.
    const asked = consumer?.info().catch(() => undefined);
    await Promise.race([asked, sleep(settings.ackTimeoutMs, undefined, { ref: false })]);
  }

  return {
    name: `nats:${settings.stream}/${settings.consumer}`,
    start,
    settle,
    stop,
    close,
    async extend() {
      for (const { message } of unsettled) message.working();
    },
    async lag() {
      const info = await consumer?.info();
      return info === undefined ? undefined : info.num_pending + info.num_ack_pending;
    },
    progress: () => ({ unsettled: unsettled.size, unconfirmed, ignored: reader.ignored() }),
  };
}

const nameOf = (error: unknown): string => (error instanceof Error ? error.name : "");

/** For people: on one line, without the user and password of any URL in it. */
const textOf = (error: unknown): string => {
  const text = error instanceof Error ? error.message || error.name : String(error);
  return printable(text.replace(/([a-z][a-z0-9+.-]*:\/\/)[^\s/@]*@/gi, "$1***@").slice(0, 500));
};

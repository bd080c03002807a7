import { randomUUID } from "node:crypto";
import { InboxError } from "../../errors.ts";
import { isRejected } from "../../message/message.ts";
import { createItemReader } from "../read-items.ts";
import type { Delivery, Intake, Settlement, Source } from "../source.ts";
import { connectSqs, type SqsApi } from "./client.ts";
import { createGroupOrder } from "./group-order.ts";
import { createHeldMessages, type Held } from "./held.ts";
import type { SourceSettings } from "./options.ts";
import { readQueueFacts, type QueueFacts } from "./queue-facts.ts";
import { readRaw, sentTimestamp, wasReceivedBefore, type RawMessage } from "./raw-message.ts";
import { createReceiver, type Receiver } from "./receiver.ts";
import { errorAdvice, errorName, isMissingQueue, isNetwork } from "./sdk-error.ts";
import { createSettler, type Settler, type VisibilityChange } from "./settler.ts";
import { createVisibility, retrySeconds, type Visibility } from "./visibility.ts";

export interface SqsSource extends Source {
  /** How many messages, or what looked like some, needed no handling, by reason. */
  ignored(): Readonly<Record<string, number>>;
}

/** What a source does not make itself. */
export interface SourceParts {
  /** A monotonic clock, in milliseconds. */
  readonly now: () => number;
  /** A number from 0 to 1, for jitter. */
  readonly random: () => number;
}

// A queue that is created anew may not be seen everywhere for a minute.
const missingQueueMs = 60_000;
const deleteRetryMs = 100;

interface Running {
  readonly api: SqsApi;
  readonly facts: QueueFacts;
  readonly settler: Settler;
  readonly visibility: Visibility;
  readonly receiver: Receiver;
}

/** The source of one queue. */
export function createSqsSource(settings: SourceSettings, { now, random }: SourceParts): SqsSource {
  const { queueName, fifo } = settings;
  const name = `sqs:${queueName}`;
  const items = createItemReader(settings.format);
  const context = { queueName, fifo, tenant: settings.tenant, items };
  const held = createHeldMessages();
  const groups = createGroupOrder<Held>();
  let running: Running | undefined;
  let intake: Intake;
  let stopped: Promise<void> | undefined;
  let closed: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;

  async function start(given: Intake): Promise<void> {
    intake = given;
    const { warn } = intake;
    const api = await connectSqs(settings.client, settings.queueUrl);
    const facts = await readQueueFacts(api, name, settings.visibilityTimeoutMs, warn);
    if (facts.retentionMs !== undefined) intake.kept?.([{ name, retentionMs: facts.retentionMs }]);
    const timeoutMs = facts.visibilityTimeoutMs;
    const settler = createSettler({ api, ordered: fifo, warn, retryDelayMs: deleteRetryMs });
    const visibility = createVisibility({ api, held: held.all, timeoutMs, now, warn, giveBack });
    const receiver = createReceiver({
      ...{ receive, take, room, failed, now, random },
      receivers: settings.receivers,
    });
    running = { api, facts, settler, visibility, receiver };
    // Often enough for a request to fail once, whatever the runner does.
    const everyMs = timeoutMs / 3;
    if (intake.facts.extendEveryMs > everyMs) timer = setInterval(() => void visibility.extend(), everyMs);
    receiver.fill();
  }

  // FIFO: ids of receives whose answers were lost. They bring back their messages, whose groups would stand still else.
  const lostAttempts: string[] = [];

  async function receive(count: number, signal: AbortSignal): Promise<readonly RawMessage[]> {
    const { api, facts } = running!;
    const attemptId = fifo ? (lostAttempts.shift() ?? randomUUID()) : undefined;
    try {
      return await api.receive({
        count,
        visibilitySeconds: facts.nameTimeout ? facts.visibilityTimeoutMs / 1_000 : undefined,
        systemAttributes: ["ApproximateReceiveCount", "SentTimestamp", ...(fifo ? ["MessageGroupId"] : [])],
        attemptId,
        signal,
      });
    } catch (error) {
      if (attemptId !== undefined && isNetwork(errorName(error))) lostAttempts.push(attemptId);
      throw error;
    }
  }

  function room(): number {
    const { maxInHand, maxInHandBytes } = intake.facts;
    return held.bytes < maxInHandBytes ? maxInHand - held.count : 0;
  }

  /** Hands over what came, or gives it back where it came too late. */
  function take(messages: readonly RawMessage[]): Promise<void> {
    const { settler, facts } = running!;
    const receivedAt = now();
    const begun: Delivery[] = [];
    const late: VisibilityChange[] = [];
    for (const raw of messages) {
      const { MessageId: messageId, ReceiptHandle: handle } = raw;
      if (messageId === undefined || handle === undefined) continue;
      const visibleAt = receivedAt + facts.visibilityTimeoutMs;
      const known = held.find(messageId);
      if (settler.isDeleting(messageId)) {
        // It is done, and SQS did not learn of it: only the newest handle is sure to delete it.
        void settler.delete([{ messageId, handle }]);
      } else if (known !== undefined) {
        Object.assign(known, { handle, receivedAt, visibleAt, lost: false });
      } else if (stopped !== undefined) {
        late.push({ messageId, handle, seconds: 0 });
      } else {
        begun.push(...hold(raw, { messageId, handle, receivedAt, visibleAt }));
      }
    }
    if (late.length > 0) return settler.change(late.reverse());
    return begun.length === 0 ? Promise.resolve() : intake.deliver(begun);
  }

  /** Takes a message in hand; the deliveries that may begin now. */
  function hold(
    raw: RawMessage,
    receipt: Pick<Held, "messageId" | "handle" | "receivedAt" | "visibleAt">,
  ): readonly Delivery[] {
    const all = readRaw(raw, context);
    if (all.length === 0) {
      void running!.settler.delete([receipt]);
      return [];
    }
    if (all.some((received) => !isRejected(received) && received.id === receipt.messageId)) {
      intake.warn(
        "messages are named by their SQS MessageId, which is transport-only: a message that is published again, or " +
          'redriven from a dead-letter queue, is a new one. Give identity: formats.sqs({ idPath: "/eventId" })',
      );
    }
    const redelivered = wasReceivedBefore(raw);
    const brokerTime = sentTimestamp(raw);
    const message: Held = {
      ...receipt,
      group: fifo ? raw.Attributes?.["MessageGroupId"] : undefined,
      bytes: Buffer.byteLength(raw.Body ?? ""),
      deliveries: all.map((received) => ({ received, redelivered, brokerTime })),
      ...{ open: all.length, ending: { kind: "ack" }, lost: false },
    };
    held.add(message);
    return groups.enter(message) ? message.deliveries : [];
  }

  async function settle(settlements: readonly (readonly [Delivery, Settlement])[]): Promise<void> {
    const { settler, receiver } = running!;
    const done: Held[] = [];
    const back: VisibilityChange[] = [];
    const begun: Delivery[] = [];
    for (const [delivery, settlement] of settlements) {
      const message = held.settle(delivery, settlement);
      if (message === undefined) continue;
      if (message.ending.kind === "ack") {
        done.push(message);
        begun.push(...(groups.done(message)?.deliveries ?? []));
      } else back.push(...undo(message));
    }
    if (begun.length > 0) void intake.deliver(begun);
    receiver.fill();
    await Promise.all([settler.delete(done), settler.change(back)]);
  }

  /**
   * A message goes back, and what waits behind it in its group before it, the last one first: as long as one of a group
   * is in hand SQS hands out none, so that they come again in their order.
   */
  function undo(message: Held): VisibilityChange[] {
    const { ending } = message;
    const behind = groups.undone(message);
    for (const entry of behind) held.remove(entry);
    const afterMs = ending.kind === "retry" ? ending.afterMs : 0;
    const own = { ...message, seconds: retrySeconds(afterMs, message.receivedAt, now()) };
    return [...back(behind), ...(message.lost ? [] : [own])];
  }

  const back = (entries: readonly Held[]): VisibilityChange[] =>
    entries
      .filter(({ lost }) => !lost)
      .map(({ messageId, handle }) => ({ messageId, handle, seconds: 0 }))
      .reverse();

  /** After 12 hours SQS hands a message over again whatever is done; before that it is given back in order. */
  function giveBack(message: Held): void {
    intake.warn(
      "a message was in hand for almost 12 hours, which is as long as SQS lets it be; others get it now",
    );
    const behind = groups.undone(message);
    for (const entry of behind) held.remove(entry);
    void running!.settler.change([...back(behind), { ...message, seconds: 0 }]);
    message.lost = true;
  }

  function failed(errorText: string, times: number, forMs: number): void {
    if (isMissingQueue(errorText) && forMs >= missingQueueMs) {
      intake.end(new InboxError("source-failed", `The queue is gone. ${errorAdvice(errorText)}.`));
    } else if (times > 1) {
      intake.warn(
        `messages cannot be received (${errorAdvice(errorText)}); it is tried again until they can`,
      );
    }
  }

  async function stopReceiving(): Promise<void> {
    if (running === undefined) return;
    const { receiver, settler } = running;
    // Nobody has begun them, and no delivery of theirs is in the runner's hand.
    const waiting = groups.takeWaiting();
    for (const entry of waiting) held.remove(entry);
    await Promise.all([receiver.stop(), settler.change(back(waiting))]);
  }

  async function closeAll(): Promise<void> {
    await stop();
    clearInterval(timer);
    await running?.settler.close();
  }

  const stop = (): Promise<void> => (stopped ??= stopReceiving());

  return {
    name,
    start,
    settle,
    stop,
    close: () => (closed ??= closeAll()),
    extend: async () => running?.visibility.extend(),
    async lag() {
      try {
        const { ApproximateNumberOfMessages } = await running!.api.attributes([
          "ApproximateNumberOfMessages",
        ]);
        const waiting = Number(ApproximateNumberOfMessages);
        return Number.isFinite(waiting) ? waiting + held.count : undefined;
      } catch (error) {
        // Without the error itself, which may hold what was signed.
        throw new InboxError("source-failed", `${name} does not tell how much waits: ${errorName(error)}.`);
      }
    },
    ignored: () => items.ignored(),
  };
}

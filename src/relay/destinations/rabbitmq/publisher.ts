import { within } from "../../../sources/rabbitmq/within.ts";
import { again, refused, sent, type Answer } from "../../answer.ts";
import type { OutgoingMessage, PublishChannel, PublishClient, ReturnedMessage } from "./publish-channel.ts";

/** Publishes on one channel, and on a new one when that is lost. */
export interface Publisher {
  /** Resolves when there is a channel; rejects if none can be had in time. Costs nothing while there is one. */
  connect(): Promise<void>;
  /** Resolves when the broker has answered, or the channel is gone. Never rejects. */
  publish(message: OutgoingMessage): Promise<Answer>;
  close(): Promise<void>;
}

interface InFlight {
  readonly message: OutgoingMessage;
  readonly answer: (answer: Answer) => void;
  returned: string | undefined;
}

/** One channel, and what was published on it and has no answer. */
interface Open {
  readonly channel: PublishChannel;
  /** In the order of publishing. */
  readonly inFlight: Set<InFlight>;
}

const blockedPauseMs = 1_000;

/**
 * `effectChooses`: the way of a message follows from its effect, which is at fault if there is no such way. A channel may
 * take `connectTimeoutMs` milliseconds to come; after that another one is tried.
 */
export function createPublisher(
  client: PublishClient,
  effectChooses: boolean,
  connectTimeoutMs: number,
): Publisher {
  let current: Promise<Open> | undefined;
  let open: Open | undefined;

  const noWay = (reason: string): Answer => {
    const error = new Error(reason);
    return effectChooses ? refused(error) : again(error, { fault: "destination" });
  };

  async function start(): Promise<Open> {
    const inFlight = new Set<InFlight>();
    let gone = false;
    const opening = client.open({
      returned: (message) => markReturned(inFlight, message),
      lost(reason) {
        gone = true;
        if (open?.inFlight === inFlight) open = current = undefined;
        lose(inFlight, reason);
      },
    });
    const channel = await within(opening, connectTimeoutMs, "connecting", (late) => late.close());
    if (gone) throw new Error("The channel was lost as soon as it was there.");
    return (open = { channel, inFlight });
  }

  /** Who caused the loss is known only where the broker names something that belongs to no other; for the others nothing is. */
  function lose(inFlight: Set<InFlight>, reason: Error): void {
    const text = reason.message;
    const tooLarge = /message size (\d+)/i.exec(text)?.[1];
    const exchange = /(?:no|access to) exchange '([^']*)'/.exec(text)?.[1];
    const lost = again(reason, { fault: "destination", ambiguous: true });
    for (const { message, answer } of inFlight) {
      if (tooLarge !== undefined && message.body.byteLength === Number(tooLarge)) answer(refused(reason));
      else if (exchange !== undefined && message.exchange === exchange) answer(noWay(text));
      else answer(lost);
    }
    inFlight.clear();
  }

  return {
    async connect() {
      if (open !== undefined) return;
      const starting = (current ??= start());
      starting.catch(() => {
        if (current === starting) current = undefined;
      });
      await starting;
    },
    publish(message) {
      const blocked = client.blocked();
      if (blocked !== undefined) {
        const error = new Error(`The broker takes nothing at present: ${blocked}.`);
        return Promise.resolve(again(error, { fault: "destination", pauseMs: blockedPauseMs }));
      }
      if (open === undefined) {
        return Promise.resolve(again(new Error("The channel was lost."), { fault: "destination" }));
      }
      const { channel, inFlight } = open;
      return new Promise((resolve) => {
        const one: InFlight = { message, answer: resolve, returned: undefined };
        inFlight.add(one);
        try {
          channel.publish(message, (kept) => {
            if (!inFlight.delete(one)) return;
            if (one.returned !== undefined) resolve(noWay(one.returned));
            else if (kept) resolve(sent());
            else
              resolve(again(new Error("The broker could not keep the message."), { fault: "destination" }));
          });
        } catch (error) {
          // Nothing of it has left this process.
          if (inFlight.delete(one)) resolve(again(error));
        }
      });
    },
    async close() {
      const last = await current?.catch(() => undefined);
      open = current = undefined;
      await last?.channel.close().catch(() => undefined);
      await client.close();
    },
  };
}

/** Copies come back in the order they were published in. */
function markReturned(inFlight: ReadonlySet<InFlight>, returned: ReturnedMessage): void {
  const { messageId, exchange, routingKey, reason } = returned;
  for (const one of inFlight) {
    const { message } = one;
    if (one.returned !== undefined || message.messageId !== messageId) continue;
    if (message.exchange !== exchange || message.routingKey !== routingKey) continue;
    one.returned = `No queue takes it: ${reason} (exchange ${JSON.stringify(exchange)}, routing key ${JSON.stringify(routingKey)}).`;
    return;
  }
}

import { InboxError, causes } from "../../errors.ts";
import { showValue } from "../../message/show-value.ts";
import { wholeNumber } from "../../whole-number.ts";
import { again, refused, sent, type Answer } from "../answer.ts";
import type { DeliveryOptions, Destination } from "../destination.ts";
import type { Effect } from "../effect.ts";
import { binaryEvent, percentEncoded } from "./cloud-event.ts";
import { digestId } from "./wire-id.ts";

/** The part of a `JetStreamClient` of `@nats-io/jetstream` that publishing uses: `jetstream(connection)`. */
export interface NatsPublishClient<Headers extends NatsHeaders> {
  publish(
    subject: string,
    payload: Uint8Array | undefined,
    options: {
      readonly headers: Headers;
      readonly msgID: string;
      readonly timeout: number;
      readonly expect?: { readonly streamName: string };
    },
  ): Promise<NatsPublished>;
}

/** The part of `MsgHdrs` that is used. */
export interface NatsHeaders {
  set(name: string, value: string): void;
}

/** What JetStream answers. */
export interface NatsPublished {
  readonly stream: string;
  readonly seq: number;
  readonly duplicate: boolean;
}

export interface NatsDestinationOptions<Headers extends NatsHeaders = NatsHeaders> extends DeliveryOptions {
  /** `jetstream(connection)` of `@nats-io/jetstream`. The connection stays yours. */
  readonly jetstream: NatsPublishClient<Headers>;
  /** `headers` of the package that `connect` comes from, such as `@nats-io/transport-node`. */
  readonly headers: () => Headers;
  /** The subject that effects are published to; some stream must take it. */
  readonly subject: string | ((effect: Effect) => string);
  /** The stream that must take them; another one that does is an error. Default: any. */
  readonly stream?: string | undefined;
  /** How long to wait for the server's answer, in milliseconds. Default 10,000. */
  readonly answerTimeoutMs?: number | undefined;
}

/** Sizes of message and headers; asking again with the same ones is in vain. */
const tooLarge = new Set([10_054, 10_097]);
const headerName = /^[\x21-\x39\x3b-\x7e]+$/;

/**
 * Publishes effects to a JetStream stream, each as a CloudEvent in binary mode. `Nats-Msg-Id` is the effect's digest and not
 * its own id: the server compares it within a whole stream and drops the second without looking at it. An answer that it
 * is there already is a confirmation. Default `concurrency` 256: so many wait for answers side by side, one of each key.
 * Throws `invalid-option`.
 */
export function natsDestination<Headers extends NatsHeaders>(
  options: NatsDestinationOptions<Headers>,
): Destination {
  const { jetstream, headers, subject, stream } = options;
  if (typeof jetstream?.publish !== "function") {
    throw new InboxError("invalid-option", "jetstream must be jetstream(connection) of @nats-io/jetstream.");
  }
  if (typeof headers !== "function") {
    throw new InboxError(
      "invalid-option",
      "headers must be the function headers of @nats-io/transport-node.",
    );
  }
  if (typeof subject !== "function" && !isSubject(subject)) throw wrongSubject(subject);
  if (stream !== undefined && (typeof stream !== "string" || !/^[^\s.*>/\\]+$/.test(stream))) {
    throw new InboxError("invalid-option", `stream must be a stream's name, not ${showValue(stream)}.`);
  }
  const timeout = wholeNumber("answerTimeoutMs", options.answerTimeoutMs, 10_000, 1, 86_400_000);
  const effectChooses = typeof subject === "function";

  return {
    concurrency: 256,
    ...options,
    async deliver(effect): Promise<Answer> {
      try {
        const to = typeof subject === "function" ? subject(effect) : subject;
        if (!isSubject(to)) return refused(wrongSubject(to));
        const published = await jetstream.publish(to, effect.payload ?? undefined, {
          headers: headersOf(effect, headers()),
          ...{ msgID: digestId(effect), timeout },
          ...(stream === undefined ? {} : { expect: { streamName: stream } }),
        });
        const { stream: taker, seq, duplicate } = published;
        // Somebody who is no stream may listen on the subject and answer whatever he likes.
        if (typeof taker === "string" && taker !== "" && typeof seq === "number" && (seq > 0 || duplicate)) {
          return sent(duplicate ? { stream: taker, duplicate } : { stream: taker, seq });
        }
        return again(new Error("What answered is no stream."), { ambiguous: true });
      } catch (error) {
        return answerOf(error, effectChooses);
      }
    },
  };
}

function headersOf<Headers extends NatsHeaders>(effect: Effect, headers: Headers): Headers {
  const event = binaryEvent(effect);
  for (const [name, value] of event.headers) {
    // The server's own headers make it store a message elsewhere, later, or not at all.
    if (!headerName.test(name) || /^nats-/i.test(name)) continue;
    headers.set(name, /^[^\s\p{Cc}](?:[^\p{Cc}]*[^\s\p{Cc}])?$/u.test(value) ? value : percentEncoded(value));
  }
  for (const [name, value] of event.attributes) headers.set(`ce-${name}`, percentEncoded(value));
  if (event.contentType !== undefined) headers.set("content-type", percentEncoded(event.contentType));
  return headers;
}

function answerOf(error: unknown, effectChooses: boolean): Answer {
  for (const link of causes(error)) {
    if (!(link instanceof Error)) continue;
    const { name, message } = link;
    const { code, status } = link as { code?: unknown; status?: unknown };
    if (name === "JetStreamApiError" || name === "StreamNotFoundError") {
      if (tooLarge.has(code as number)) return refused(error);
      // The server said no, for its own reasons as far as one can see: no room, no leader, another stream.
      const own = typeof status === "number" && status < 500 && effectChooses;
      return again(error, { fault: own ? "effect" : "destination" });
    }
    if (/max_payload/.test(message)) return refused(error);
    if (name === "PermissionViolationError") {
      return effectChooses ? refused(error) : again(error, { fault: "destination" });
    }
    // No stream takes the subject, or the one that does has no leader just now.
    if (name === "NoResponders" || name === "JetStreamNotEnabled") {
      return again(error, { fault: effectChooses ? "effect" : "destination" });
    }
    if (name === "ClosedConnectionError" || name === "DrainingConnectionError") {
      return again(error, { fault: "destination" });
    }
    if (name === "InvalidArgumentError" || name === "InvalidSubjectError") return refused(error);
  }
  // A request that ran out of time, or that the connection was lost under; the client may even send it later.
  return again(error, { fault: "destination", ambiguous: true });
}

const isSubject = (subject: unknown): boolean =>
  typeof subject === "string" &&
  Buffer.byteLength(subject) <= 1_000 &&
  /^[^\s\p{Cc}.*>]+(?:\.[^\s\p{Cc}.*>]+)*$/u.test(subject);

const wrongSubject = (subject: unknown): InboxError =>
  new InboxError(
    "invalid-option",
    `subject must be a subject without spaces, empty parts and wildcards; got ${showValue(subject)}.`,
  );

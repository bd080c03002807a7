import { InboxError } from "../../errors.ts";
import { toFormat, type FormatChoice } from "../../message/formats/formats.ts";
import type { Format } from "../../message/formats/format.ts";
import { showValue } from "../../message/show-value.ts";
import { wholeNumber } from "../../whole-number.ts";
import type { NatsJetStream, NatsMessage } from "./client.ts";

export interface NatsOptions {
  /** `jetstream(connection)` of `@nats-io/jetstream`. The connection stays yours: the source never closes it. */
  readonly jetstream: NatsJetStream;
  readonly stream: string;
  /** A durable pull consumer that is there, with explicit acknowledgement. The source creates and changes nothing. */
  readonly consumer: string;
  /** How messages are named: a format's name or a format. Default `"nats"`: the header `Nats-Msg-Id`. */
  readonly identity?: FormatChoice | undefined;
  /** The tenant of all messages. Default none. */
  readonly tenant?: string | undefined;
  /** What messages are kept in order by: `"subject"`, a header, or a function. Default nothing, or what the format finds. */
  readonly key?: "subject" | { readonly header: string } | ((message: NatsMessage) => unknown) | undefined;
  /** Most messages of one pull. Default 256, fewer while messages are large. */
  readonly maxBatch?: number | undefined;
  /** How long to wait for the server to confirm an acknowledgement, in milliseconds. Default 5,000. */
  readonly ackTimeoutMs?: number | undefined;
  /** How long the consumer may be missing before the source ends with an error, in milliseconds. Default 60,000. */
  readonly missingConsumerTimeoutMs?: number | undefined;
  /** A number from 0 to 1, for jitter. Default `Math.random`. */
  readonly random?: (() => number) | undefined;
  /** Milliseconds of a clock that never goes back. Default `performance.now`. */
  readonly now?: (() => number) | undefined;
}

/** The options with every default filled in. */
export interface NatsSettings {
  readonly jetstream: NatsJetStream;
  readonly stream: string;
  readonly consumer: string;
  readonly format: Format;
  readonly tenant: string | undefined;
  readonly key: NatsOptions["key"];
  readonly maxBatch: number;
  readonly ackTimeoutMs: number;
  readonly missingConsumerTimeoutMs: number;
  readonly random: () => number;
  readonly now: () => number;
}

/** Checks every option; throws `invalid-option` with field, rule and value. */
export function natsSettings(options: NatsOptions): NatsSettings {
  const { jetstream, stream, consumer, key } = options;
  if (typeof (jetstream as Partial<NatsJetStream> | undefined)?.consumers?.get !== "function") {
    throw new InboxError("invalid-option", "jetstream must be jetstream(connection) of @nats-io/jetstream.");
  }
  for (const [field, name] of Object.entries({ stream, consumer })) {
    if (typeof name === "string" && /^[^\s.*>/\\]+$/.test(name)) continue;
    const rule = `${field} must be a name without spaces, dots, slashes and wildcards, not ${showValue(name)}.`;
    throw new InboxError("invalid-option", rule);
  }
  if (key !== undefined && key !== "subject" && typeof key !== "function" && !namesHeader(key)) {
    const rule = `key must be "subject", { header: name }, or a function, not ${showValue(key)}.`;
    throw new InboxError("invalid-option", rule);
  }
  const milliseconds = (field: string, value: number | undefined, fallback: number): number =>
    wholeNumber(field, value, fallback, 1, 86_400_000);
  return {
    ...{ jetstream, stream, consumer, key, tenant: options.tenant },
    format: toFormat(options.identity ?? "nats"),
    maxBatch: wholeNumber("maxBatch", options.maxBatch, 256, 1, 10_000),
    ackTimeoutMs: milliseconds("ackTimeoutMs", options.ackTimeoutMs, 5_000),
    missingConsumerTimeoutMs: milliseconds(
      "missingConsumerTimeoutMs",
      options.missingConsumerTimeoutMs,
      60_000,
    ),
    random: options.random ?? Math.random,
    now: options.now ?? (() => performance.now()),
  };
}

const namesHeader = (key: unknown): boolean =>
  typeof key === "object" &&
  key !== null &&
  "header" in key &&
  typeof key.header === "string" &&
  key.header !== "";

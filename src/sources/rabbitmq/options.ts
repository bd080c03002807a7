import { InboxError } from "../../errors.ts";
import { toFormat, type FormatChoice } from "../../message/formats/formats.ts";
import type { Format } from "../../message/formats/format.ts";
import { showValue } from "../../message/show-value.ts";
import { wholeNumber } from "../../whole-number.ts";
import type { AmqpMessage } from "./client.ts";
import { checkClient, type RabbitmqClient } from "./detect-client.ts";
import type { Management } from "./management.ts";
import type { QueueFacts } from "./queue-facts.ts";

export interface RabbitmqOptions {
  /**
   * A `Connection` of `rabbitmq-client`, or a function that connects: `() => amqplib.connect(url)`. What a function made
   * is closed with the source; a `Connection` stays yours. Credentials and TLS are the client's own options.
   */
  readonly client: RabbitmqClient;
  /** A classic or quorum queue that is there. The source declares, binds and changes nothing. */
  readonly queue: string;
  /** How messages are named: a format's name or a format. Default `"rabbitmq"`: the `message_id` property. */
  readonly identity?: FormatChoice | undefined;
  /** The tenant of all messages. Default none. */
  readonly tenant?: string | undefined;
  /**
   * What messages are kept in order by: `"routing-key"`, a header, or a function. Default nothing, or what the format
   * finds. A queue with several consumers has no order but within each of them.
   */
  readonly key?:
    "routing-key" | { readonly header: string } | ((message: AmqpMessage) => unknown) | undefined;
  /** Unsettled messages the broker sends ahead, 1 to 65,535. Default: grows up to twice what the run takes in hand. */
  readonly prefetch?: number | undefined;
  /** Most messages that wait for a retry without taking room from others. Default 10,000. */
  readonly maxHeld?: number | undefined;
  /** The consumer's priority (`x-priority`). Default none. */
  readonly priority?: number | undefined;
  /** Asked at the start whether the broker would drop messages. Default: nobody is asked, and a warning says so. */
  readonly management?: Management | undefined;
  /** What you know of the queue; it comes before what the broker says. */
  readonly queueFacts?: QueueFacts | undefined;
  /** How long a queue that was there may be missing before the source ends with an error, in milliseconds. Default 60,000. */
  readonly missingQueueTimeoutMs?: number | undefined;
  /** How long to wait for an answer of the broker, in milliseconds. Default 30,000. */
  readonly answerTimeoutMs?: number | undefined;
  /** Wait before the first attempt to connect again, in milliseconds; it doubles up to `maxReconnectDelayMs`. Default 100. */
  readonly reconnectDelayMs?: number | undefined;
  /** Longest wait between two attempts to connect, in milliseconds. Default 30,000. */
  readonly maxReconnectDelayMs?: number | undefined;
  /** A number from 0 to 1, for jitter. Default `Math.random`. */
  readonly random?: (() => number) | undefined;
  /** Milliseconds of a clock that never goes back. Default `performance.now`. */
  readonly now?: (() => number) | undefined;
}

/** The options with every default filled in. */
export interface RabbitmqSettings {
  readonly client: RabbitmqClient;
  readonly queue: string;
  readonly format: Format;
  readonly tenant: string | undefined;
  readonly key: RabbitmqOptions["key"];
  readonly prefetch: number | undefined;
  readonly maxHeld: number;
  readonly priority: number | undefined;
  readonly management: Management | undefined;
  readonly queueFacts: QueueFacts;
  readonly missingQueueTimeoutMs: number;
  readonly answerTimeoutMs: number;
  readonly reconnectDelayMs: number;
  readonly maxReconnectDelayMs: number;
  readonly random: () => number;
  readonly now: () => number;
}

/** Checks every option; throws `invalid-option` with field, rule and value. */
export function rabbitmqSettings(options: RabbitmqOptions): RabbitmqSettings {
  checkClient(options.client);
  const { queue, key, management, priority } = options;
  if (typeof queue !== "string" || queue === "" || Buffer.byteLength(queue) > 255) {
    throw new InboxError(
      "invalid-option",
      `queue must be a name of 1 to 255 bytes, not ${showValue(queue)}.`,
    );
  }
  if (key !== undefined && key !== "routing-key" && typeof key !== "function" && !namesHeader(key)) {
    const rule = `key must be "routing-key", { header: name }, or a function, not ${showValue(key)}.`;
    throw new InboxError("invalid-option", rule);
  }
  if (management !== undefined) checkUrl(management.url);
  const given = options.queueFacts?.acknowledgementTimeoutMs;
  if (given !== undefined) {
    wholeNumber("queueFacts.acknowledgementTimeoutMs", given, given, 1, Number.MAX_SAFE_INTEGER);
  }
  return {
    client: options.client,
    queue,
    format: toFormat(options.identity ?? "rabbitmq"),
    tenant: options.tenant,
    key,
    prefetch:
      options.prefetch === undefined ? undefined : wholeNumber("prefetch", options.prefetch, 1, 1, 65_535),
    maxHeld: wholeNumber("maxHeld", options.maxHeld, 10_000, 0, 65_535),
    priority:
      priority === undefined ? undefined : wholeNumber("priority", priority, 0, -1_000_000, 1_000_000),
    management,
    queueFacts: options.queueFacts ?? {},
    missingQueueTimeoutMs: milliseconds("missingQueueTimeoutMs", options.missingQueueTimeoutMs, 60_000),
    answerTimeoutMs: milliseconds("answerTimeoutMs", options.answerTimeoutMs, 30_000),
    reconnectDelayMs: milliseconds("reconnectDelayMs", options.reconnectDelayMs, 100),
    maxReconnectDelayMs: milliseconds("maxReconnectDelayMs", options.maxReconnectDelayMs, 30_000),
    random: options.random ?? Math.random,
    now: options.now ?? (() => performance.now()),
  };
}

const milliseconds = (field: string, value: number | undefined, fallback: number): number =>
  wholeNumber(field, value, fallback, 1, 86_400_000);

const namesHeader = (key: unknown): boolean =>
  typeof key === "object" &&
  key !== null &&
  "header" in key &&
  typeof key.header === "string" &&
  key.header !== "";

/** A password in a URL ends up in logs sooner or later. */
function checkUrl(text: unknown): void {
  const url = typeof text === "string" && URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username !== "" || url.password !== "") {
    throw new InboxError(
      "invalid-option",
      "management.url must be an http or https URL without credentials; give username and password beside it.",
    );
  }
}

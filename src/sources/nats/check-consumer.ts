import { InboxError } from "../../errors.ts";
import type { NatsConsumerInfo } from "./client.ts";

const nanosecondsAMillisecond = 1_000_000;

/** What a person should know of the consumer. Throws `source-failed` where the promises cannot be kept with it. */
export function checkConsumer({ config }: NatsConsumerInfo, extendEveryMs: number): readonly string[] {
  if (config.ack_policy !== "explicit") {
    const text = `The consumer's ack_policy is ${config.ack_policy ?? "unknown"}; it must be explicit, for one message at a time.`;
    throw new InboxError("source-failed", text);
  }
  if (config.deliver_subject !== undefined && config.deliver_subject !== "") {
    throw new InboxError(
      "source-failed",
      "The consumer is a push consumer; the source needs a pull consumer.",
    );
  }
  const warnings: string[] = [];
  const limit = config.max_deliver ?? -1;
  if (limit > 0) {
    warnings.push(
      `The server will DROP messages: max_deliver is ${limit}, and after so many deliveries, by failures, releases or crashes, a ` +
        "message never comes again. Set max_deliver to -1: the inbox counts attempts itself and keeps what fails for good.",
    );
  }
  const waits = [config.ack_wait ?? 0, ...(config.backoff ?? [])].filter((wait) => wait > 0);
  const waitMs = Math.min(...waits) / nanosecondsAMillisecond;
  if (waitMs < 2 * extendEveryMs) {
    warnings.push(
      `The server waits ${waitMs} ms for an acknowledgement, and deliveries in hand are extended every ${extendEveryMs} ms: they ` +
        "may be handed to somebody else meanwhile. Raise ack_wait to at least three times extendEveryMs, or lower that.",
    );
  }
  if (config.durable_name === undefined || config.durable_name === "") {
    warnings.push(
      "The consumer is not durable: the server forgets it, and what was settled, when nobody uses it.",
    );
  }
  return warnings;
}

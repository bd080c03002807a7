import { InboxError } from "../errors.ts";
import { computeFingerprint } from "../message/fingerprint.ts";
import type { RejectedMessage } from "../message/message.ts";
import { telemetry } from "../telemetry/channels.ts";
import { asError } from "./classify-error.ts";
import { uncountedDelay } from "./fail.ts";
import type { LaneContext } from "./lane-context.ts";
import type { Processed } from "./outcome.ts";

/**
 * Keeps a delivery that could not become a message, as it came. Without an identity nothing tells a redelivery from a
 * second message with the same body, so each delivery is an entry of its own. Never rejects.
 */
export async function quarantineReceived(
  context: LaneContext,
  received: RejectedMessage,
): Promise<Processed<never>> {
  const { code, text } = received.rejected;
  const processed = await keep();
  if (telemetry.outcome.hasSubscribers) {
    const { outcome, error } = processed;
    telemetry.outcome.publish({ consumer: context.name.consumer, message: undefined, outcome, error });
  }
  return processed;

  async function keep(): Promise<Processed<never>> {
    try {
      await context.store.quarantine(context.name, {
        identity: undefined,
        rawIdentity: received.identity,
        key: received.key,
        type: received.type,
        headers: received.headers,
        payload: received.bytes,
        fingerprint: computeFingerprint("b", received.bytes),
        code,
        error: text,
        attempts: 0,
      });
      return { outcome: "rejected", settle: "ack", error: new InboxError(code, text), attempts: 0 };
    } catch (error) {
      return {
        outcome: "failed",
        settle: "retry",
        retryAfterMs: uncountedDelay(context, 1),
        error: asError(error),
      };
    }
  }
}

import type { Message } from "../message/message.ts";
import type { ConsumerName } from "../store/store.ts";
import { telemetry } from "../telemetry/channels.ts";
import type { Processed } from "./outcome.ts";

/** Tells whoever listens what became of a message. */
export function announce(name: ConsumerName, message: Message, { outcome, error }: Processed): void {
  if (telemetry.outcome.hasSubscribers)
    telemetry.outcome.publish({ consumer: name.consumer, message, outcome, error });
}

import { telemetry } from "./channels.ts";

/**
 * Tells an operator something that should be read once: on the channel `transactional-inbox:warning`, and where nobody
 * listens there as a warning of the process, which Node.js prints to stderr.
 */
export function tellWarning(message: string): void {
  if (telemetry.warning.hasSubscribers) telemetry.warning.publish({ message });
  else process.emitWarning(message, "InboxWarning");
}

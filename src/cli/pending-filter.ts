import { Option, type Command } from "commander";
import type { PendingFilter, PendingState } from "../store/operator-store.ts";

/** What the filter's options give. */
export interface PendingFilterOptions {
  readonly consumer?: string;
  readonly state?: PendingState;
  readonly producer?: string;
  readonly tenant?: string;
  readonly messageId?: string;
  readonly key?: string;
  readonly type?: string;
  readonly code?: string;
}

/** The options of which pending messages; all that are given must fit. */
export const addPendingFilter = (command: Command): Command =>
  command
    .option("--consumer <name>", "only this consumer's")
    .addOption(new Option("--state <state>", "only in this state").choices(["ready", "scheduled", "behind"]))
    .option("--producer <name>", "only from this producer")
    .option("--tenant <name>", "only of this tenant")
    .option("--key <key>", "only of this key")
    .option("--type <type>", "only of this type")
    .option("--code <code>", "only with this code of the last failed attempt");

/** The filter among a command's options. */
export function pendingFilterOf(options: PendingFilterOptions): PendingFilter {
  const { consumer, state, producer, tenant, messageId, key, type, code } = options;
  return { consumer, state, producer, tenant, messageId, key, type, code };
}

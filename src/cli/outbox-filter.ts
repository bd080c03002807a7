import type { Command } from "commander";
import type { RefusedFilter } from "../store/outbox-operator.ts";
import type { QuarantineStatus } from "../store/quarantine-entry.ts";
import { moment } from "./quarantine-filter.ts";

/** What the filter's options give. */
export interface RefusedFilterOptions {
  readonly destination?: string;
  readonly code?: string;
  readonly group?: string;
  readonly tenant?: string;
  readonly producer?: string;
  readonly effectId?: string;
  readonly type?: string;
  readonly key?: string;
  readonly since?: Date;
  readonly until?: Date;
  readonly text?: string;
  readonly status?: QuarantineStatus | "all";
}

/** The options of which refused effects; all that are given must fit. */
export const addRefusedFilter = (command: Command): Command =>
  command
    .option("--destination <name>", "only to this destination")
    .option("--code <code>", "only with this code, such as attempts-exhausted")
    .option("--group <group>", "only refusals of this group, from: inbox outbox groups")
    .option("--producer <name>", "only from this producer")
    .option("--tenant <name>", "only of this tenant")
    .option("--effect-id <id>", "only this effect")
    .option("--type <type>", "only effects of this type")
    .option("--key <key>", "only effects of this key")
    .option(
      "--since <time>",
      "only what was refused at this time or later, such as 2030-01-31T12:00Z",
      moment,
    )
    .option("--until <time>", "only what was refused before this time", moment)
    .option("--text <text>", "only with this text in the error, whatever its case");

/** The filter among a command's options. */
export function refusedFilterOf(options: RefusedFilterOptions): RefusedFilter {
  const { destination, code, group, tenant, producer, effectId, type, key, since, until, text, status } =
    options;
  return { destination, code, group, tenant, producer, effectId, type, key, since, until, text, status };
}

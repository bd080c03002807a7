import { InvalidArgumentError, Option, type Command } from "commander";
import type { QuarantineFilter, QuarantineStatus } from "../store/quarantine-entry.ts";

/** What the filter's options give. */
export interface FilterOptions {
  readonly consumer?: string;
  readonly code?: string;
  readonly group?: string;
  readonly tenant?: string;
  readonly producer?: string;
  readonly messageId?: string;
  readonly type?: string;
  readonly key?: string;
  readonly since?: Date;
  readonly until?: Date;
  readonly text?: string;
  readonly status?: QuarantineStatus | "all";
}

/** The options of which entries; all that are given must fit. */
export const addFilter = (command: Command): Command =>
  command
    .option("--consumer <name>", "only this consumer's")
    .option("--code <code>", "only with this code, such as payload-conflict")
    .option("--group <group>", "only failures of this group, from: inbox quarantine groups")
    .option("--producer <name>", "only from this producer")
    .option("--tenant <name>", "only of this tenant")
    .option("--message-id <id>", "only of this message")
    .option("--type <type>", "only messages of this type")
    .option("--key <key>", "only messages of this key")
    .option(
      "--since <time>",
      "only what failed last at this time or later, such as 2030-01-31T12:00Z",
      moment,
    )
    .option("--until <time>", "only what failed last before this time", moment)
    .option("--text <text>", "only with this text in the error, whatever its case");

/** `--status`, for what may be about decided entries too. */
export const statusOption = (): Option =>
  new Option("--status <status>", "only with this status")
    .choices(["open", "retried", "repaired", "discarded", "all"])
    .default("open");

/** The filter among a command's options. */
export function filterOf(options: FilterOptions): QuarantineFilter {
  const { consumer, code, group, tenant, producer, messageId, type, key, since, until, text, status } =
    options;
  return { consumer, code, group, tenant, producer, messageId, type, key, since, until, text, status };
}

/** Whether a filter leaves anything out, its status apart. */
export const leavesOut = ({ status: _, ...filter }: { readonly status?: unknown }): boolean =>
  Object.values(filter).some((part) => part !== undefined);

/** The same moment on every machine: a time without a zone is UTC, as all that is shown. */
export function moment(text: string): Date {
  const match = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?)(Z|[+-]\d\d:\d\d)?)?$/.exec(
    text,
  );
  const value = new Date(
    match === null ? Number.NaN : `${match[1]}T${match[2] ?? "00:00"}${match[3] ?? "Z"}`,
  );
  if (Number.isNaN(value.getTime()) || value.getUTCFullYear() < 1) {
    throw new InvalidArgumentError("It must be a time such as 2030-01-31 or 2030-01-31T12:00Z.");
  }
  return value;
}

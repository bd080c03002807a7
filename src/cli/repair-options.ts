import { readFile } from "node:fs/promises";
import { buffer } from "node:stream/consumers";
import type { Command } from "commander";
import type { RepairInput } from "../quarantine/repair.ts";
import { UsageError } from "./usage-error.ts";

/** What is to be changed about an entry's message. */
export interface RepairOptions {
  readonly payload?: string;
  readonly id?: string;
  readonly producer?: string;
  readonly tenant?: string;
  readonly key?: string;
  readonly type?: string;
}

/** The options of a repair; what is not given stays as it came. */
export const addRepairOptions = (command: Command): Command =>
  command
    .option("--payload <file>", "the payload to take instead; - is stdin")
    .option("--id <id>", "the message id, for an entry without one or for a conflict's second body")
    .option("--producer <name>", "the producer")
    .option("--tenant <name>", "the tenant")
    .option("--key <key>", "the key")
    .option("--type <type>", "the type");

/** Reads the payload's file. Throws a usage error where it cannot be read. */
export async function changesOf({ payload, ...rest }: RepairOptions): Promise<RepairInput> {
  const { id, producer, tenant, key, type } = rest;
  const changes = { id, producer, tenant, key, type };
  if (payload === undefined) return changes;
  try {
    return { ...changes, payload: payload === "-" ? await buffer(process.stdin) : await readFile(payload) };
  } catch (error) {
    throw new UsageError(`${payload} cannot be read: ${(error as Error).message}`);
  }
}

/** Whether anything is to be changed. */
export const changesAnything = (changes: RepairInput): boolean =>
  Object.values(changes).some((part) => part !== undefined);

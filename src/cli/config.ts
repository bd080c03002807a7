import type { RedactionOptions } from "../quarantine/redact.ts";
import type { PayloadKeys } from "../store/protection.ts";
import { importModule } from "./import-module.ts";
import type { Io } from "./io.ts";
import { UsageError } from "./usage-error.ts";

/** What the module of `--config`, or of INBOX_CONFIG, may export. */
export interface Config extends RedactionOptions {
  /** As given to `postgres(pool, { payloadKeys })`. */
  readonly payloadKeys?: PayloadKeys;
  /** What `inbox relay` sends to. */
  readonly destinations?: unknown;
  /** How `inbox relay` works. */
  readonly relay?: unknown;
}

const names = ["payloadKeys", "redact", "redactHeaders", "destinations", "relay"];

/**
 * Loads the operator's settings. Keys come from a module, so that they may come from anywhere, and never stand on a
 * command line. Throws a usage error for what is none; whatever the module throws comes through.
 */
export async function loadConfig(io: Io, path: string | undefined): Promise<Config> {
  const file = path ?? io.env["INBOX_CONFIG"];
  if (file === undefined || file === "") return {};
  const module = await importModule(file);
  const given = Object.keys(module).filter((name) => names.includes(name));
  if (given.length === 0) throw new UsageError(`${file} exports none of ${names.join(", ")}.`);
  const { payloadKeys, redact, redactHeaders } = module;
  if (payloadKeys !== undefined && !isKeys(payloadKeys)) {
    throw new UsageError(`${file}: "payloadKeys" must have two functions, current() and byId(id).`);
  }
  for (const [name, list] of Object.entries({ redact, redactHeaders })) {
    if (list !== undefined && !(Array.isArray(list) && list.every((part) => typeof part === "string"))) {
      throw new UsageError(`${file}: "${name}" must be a list of texts.`);
    }
  }
  return Object.fromEntries(given.map((name) => [name, module[name]]));
}

const isKeys = (value: unknown): value is PayloadKeys =>
  typeof value === "object" &&
  value !== null &&
  ["current", "byId"].every((name) => typeof (value as Record<string, unknown>)[name] === "function");

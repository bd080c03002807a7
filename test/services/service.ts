import type { TestContext } from "node:test";
import { onTestEnd, type Scope } from "../support/cleanup.ts";
import { requireOrSkip } from "../support/require-or-skip.ts";
import type { ServiceFacts, ServiceName } from "./facts.ts";
import { kinds } from "./kinds.ts";
import { ownInstance } from "./own.ts";
import { sharedService, type Found } from "./shared.ts";
import type { Help } from "./way.ts";

export type * from "./facts.ts";

/** A service of one test's own, to be stopped, killed and started again; it keeps its data and its address. */
export interface OwnService<Facts> {
  readonly facts: Facts;
  /** Holds its settings, its data and its logs. A setting that a test changes there is read at the next start. */
  readonly directory: string;
  /** Its processes in their order: one a node. */
  readonly pids: readonly number[];
  /** What its processes have written so far, for a failing test's message. */
  log(): string;
  /** Starts it after `stop` or `kill`, and resolves when it does its work. Harmless while it runs. */
  start(): Promise<void>;
  /** Stops it in good order. Harmless when it is down. */
  stop(): Promise<void>;
  /** Kills all its processes with SIGKILL and waits until they are gone. */
  kill(): Promise<void>;
  /** `stop`, then `start`. */
  restart(): Promise<void>;
}

/**
 * The service that all tests of this run share, started by the first that asks. Topics, queues and streams have names
 * of the test's own. Where the service cannot be had, the test is skipped with the reason (`undefined`: return), and
 * with `CI=true` it fails.
 *
 *     const kafka = await service(t, "kafka");
 *     if (kafka === undefined) return;
 */
export async function service<Name extends ServiceName>(
  t: TestContext,
  name: Name,
): Promise<ServiceFacts[Name] | undefined> {
  const found = await find(name);
  if (found.kind === "there") return found.facts;
  requireOrSkip(t, false, found.reason);
  return undefined;
}

/** Tests install what they need where they may: on Debian as root, and what Maven brings. */
const help: Help = {
  install: process.env["TEST_SERVICES_INSTALL"] !== "0",
  say: (text) => process.stderr.write(`${text}\n`),
};

// One search a process, however many of its tests ask.
const searches = new Map<ServiceName, Promise<Found<unknown>>>();

function find<Name extends ServiceName>(name: Name): Promise<Found<ServiceFacts[Name]>> {
  const known = searches.get(name) ?? sharedService<unknown>(name, kinds[name]).use(help);
  searches.set(name, known);
  return known as Promise<Found<ServiceFacts[Name]>>;
}

/** What can be started for one test alone. PostgreSQL has `ownServer` of `test/support/server.ts`. */
export type OwnName = Exclude<ServiceName, "postgres" | "pgbouncer">;

/** A service of the test's own; it ends with the test, or with what `ends` is. Skips and fails as `service` does. */
export async function ownService<Name extends OwnName>(
  t: TestContext,
  name: Name,
  ends: Scope = t,
): Promise<OwnService<ServiceFacts[Name]> | undefined> {
  const made = await ownInstance<ServiceFacts[Name]>(name, kinds[name], help);
  if (typeof made === "string") {
    requireOrSkip(t, false, made);
    return undefined;
  }
  onTestEnd(ends, () => made.remove());
  return made;
}

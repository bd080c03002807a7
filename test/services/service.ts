import type { TestContext } from "node:test";
import type { ServiceFacts, ServiceName } from "./facts.ts";

export type * from "./facts.ts";

/** A service of one test's own, to be stopped, killed and started again; it keeps its data and its address. */
export interface OwnService<Facts> {
  readonly facts: Facts;
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
  t.skip(`${name} is not there`);
  return undefined;
}

/** What can be started for one test alone. PostgreSQL has `ownServer` of `test/support/server.ts`. */
export type OwnName = Exclude<ServiceName, "postgres" | "pgbouncer">;

/** A service of the test's own; it ends with the test. Skips and fails as `service` does. */
export async function ownService<Name extends OwnName>(
  t: TestContext,
  name: Name,
): Promise<OwnService<ServiceFacts[Name]> | undefined> {
  t.skip(`${name} is not there`);
  return undefined;
}

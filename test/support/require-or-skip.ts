import type { TestContext } from "node:test";

/**
 * Skips the test, with a reason, where something it needs is not there; in CI, where everything is to be there, it
 * fails instead. Returns whether to go on: `if (!requireOrSkip(t, path !== undefined, "pgbouncer is not installed")) return;`
 */
export function requireOrSkip(t: TestContext, condition: boolean, reason: string): boolean {
  if (condition) return true;
  if (process.env["CI"] === "true") throw new Error(`CI has everything the tests need, but: ${reason}`);
  t.skip(reason);
  return false;
}

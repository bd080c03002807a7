import type { Intake, RunFacts } from "../../src/sources/source.ts";

const facts: RunFacts = {
  consumer: "accounting",
  lanes: 4,
  maxInHand: 1_000,
  maxInHandBytes: 64 * 1024 * 1024,
  handlerTimeoutMs: 30_000,
  extendEveryMs: 10_000,
};

/** The runner's side of a source, for tests that drive the source themselves. A warning nobody asked for fails the test. */
export const testIntake = (
  parts: Pick<Intake, "deliver" | "end"> & Partial<Intake>,
  own: Partial<RunFacts> = {},
): Intake => ({
  facts: { ...facts, ...own },
  warn: (message) => {
    throw new Error(`The source warns: ${message}`);
  },
  ...parts,
});

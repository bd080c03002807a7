import { tellWarning } from "../telemetry/tell-warning.ts";

/** Whether any handler has used the transaction it was lent. */
export interface HandlerUsage {
  /** A handler settled; `used`: it ran a statement on `tx` or returned one. */
  settled(used: boolean): void;
}

const handlersBeforeWarning = 20;

/**
 * Warns once when the first handlers all left their transaction alone: then they have no effect, or one that does not
 * commit with the claim, which a crash in between applies twice or not at all.
 */
export function createHandlerUsage(consumer: string): HandlerUsage {
  let unused = 0;
  return {
    settled(used) {
      if (unused > handlersBeforeWarning) return;
      unused = used ? Number.POSITIVE_INFINITY : unused + 1;
      if (unused !== handlersBeforeWarning) return;
      tellWarning(
        `The first ${unused} handlers of consumer ${JSON.stringify(consumer)} ran no statement on their tx and returned none. ` +
          "Only what is written through tx commits with the claim: an effect on another connection can be lost or doubled.",
      );
    },
  };
}

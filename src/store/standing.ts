import type { LogRecord } from "./log.ts";

/** Where a record stands to its log's cursor. `passed`: it is done. `gap`: something before it is not. */
export type Standing = "passed" | "next" | "gap";

/** `applied`: everything up to this offset is done; `undefined`: nothing yet. */
export function standing({ offset, previous }: LogRecord, applied: bigint | undefined): Standing {
  if (applied !== undefined && offset <= applied) return "passed";
  return previous === undefined || (applied !== undefined && previous <= applied) ? "next" : "gap";
}

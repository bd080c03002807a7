import type { TransactionStatus } from "../driver.ts";

/** Follows what a connection's transaction must be, for drivers that do not pass on what the server says of it. */
export interface TransactionWatch {
  status(): TransactionStatus;
  succeeded(text: string, command: string): void;
  failed(text: string): void;
}

const ends = /^\s*(?:commit|end|rollback|abort)(?:\s+(?:work|transaction))?\s*;?\s*$/i;
const begins = /^\s*(?:begin|start\s+transaction)\b[^;]*;?\s*$/i;
const backToSavepoint = /^\s*rollback(?:\s+(?:work|transaction))?\s+to\b[^;]*;?\s*$/i;
const mayChangeIt = /\b(?:begin|start|commit|end|rollback|abort|prepare|call|do)\b/i;
const staysInside =
  /^\s*(?:insert|update|delete|select|with|merge|values|set|show|savepoint|release|lock)\b/i;
const several = /;\s*\S/;

/**
 * Starts at idle, so it is for connections that were handed over outside a transaction. Whatever it does not fully
 * understand (several statements in one text, procedures that commit) makes it say `unknown` until the next clear end.
 */
export function transactionWatch(): TransactionWatch {
  let status: TransactionStatus = "idle";
  return {
    status: () => status,
    succeeded(text, command) {
      if (ends.test(text)) status = command === "COMMIT" || command === "ROLLBACK" ? "idle" : "unknown";
      else if (begins.test(text)) status = "open";
      else if (backToSavepoint.test(text)) status = "open";
      else if (several.test(text) || (!staysInside.test(text) && mayChangeIt.test(text))) status = "unknown";
    },
    failed(text) {
      if (ends.test(text)) status = "idle";
      else if (several.test(text)) status = "unknown";
      else if (status === "open") status = "failed";
    },
  };
}

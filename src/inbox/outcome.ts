/**
 * What became of one delivery. The first three are final and acknowledged; `stored` is
 * acknowledged because the body is in pending or quarantine; `conflict`, `rejected` and `late` are
 * acknowledged because the body is in quarantine; `busy` and `failed` are delivered again.
 */
export type Outcome =
  "applied" | "duplicate" | "superseded" | "stored" | "conflict" | "rejected" | "late" | "busy" | "failed";

/** The answer to one delivery. Processing never throws for a message: whatever happened is told here. */
export interface Processed<Result = unknown> {
  readonly outcome: Outcome;
  /** What to tell the broker. `ack` only if the effect, or the body, is safely committed. */
  readonly settle: "ack" | "retry";
  /** With `retry`: not before this many milliseconds. */
  readonly retryAfterMs?: number | undefined;
  /** What the handler returned, where this very call applied the message. */
  readonly result?: Result | undefined;
  /**
   * With `stored`, where it went to pending by this delivery: for its next `attempt`, behind its `key`, or for a
   * `worker`. Not given where its body was stored before.
   */
  readonly waitsFor?: "attempt" | "key" | "worker" | undefined;
  /** Why it is `rejected`, `conflict`, `late`, `busy` or `failed`, or `stored` for its next attempt. */
  readonly error?: Error | undefined;
  /** Failed attempts that count so far, where this one failed. */
  readonly attempts?: number | undefined;
}

import type { Identity } from "../message/message.ts";
import type { Decider } from "./quarantine-store.ts";
import type { RetentionScope } from "./retention.ts";

/** What a person decided on keeping. */
export interface RetentionDecision {
  readonly id: string;
  readonly kind: "window" | "retire" | "erase";
  readonly at: Date;
  readonly by: string;
  readonly why: string;
  readonly consumer: string;
  /** What it was about, as JSON. */
  readonly subject: string;
}

/** An effect, by where it goes and its id there. */
export interface EffectName {
  readonly destination: string;
  readonly id: string;
}

/** Where bodies of a message were erased, and in how many rows. */
export interface Erased {
  /** It was not handled, and never will be. */
  readonly pending: number;
  readonly quarantine: number;
  readonly repairs: number;
  readonly answers: number;
  /** Texts of failed attempts, which may quote a body. */
  readonly attempts: number;
  /** Bodies of refused effects that were decided on, and what destinations answered. */
  readonly effects: number;
}

/** `undecided`: it is pending, or in quarantine without a decision; so its body is needed. */
export type EraseOutcome =
  | { readonly kind: "erased"; readonly erased: Erased; readonly decision: string }
  | { readonly kind: "unknown" }
  | { readonly kind: "undecided"; readonly pending: number; readonly open: number }
  | { readonly kind: "to be sent"; readonly effects: number };

export interface EraseRequest {
  readonly consumer: string;
  readonly identity: Identity;
  readonly digest: string;
  /** Erases what was not handled yet, too: it is discarded with that. */
  readonly discard: boolean;
  /** Effects of the message under ids that its handler chose. Those without are found by the message. */
  readonly effects: readonly EffectName[];
  /** Only counts. */
  readonly dryRun: boolean;
}

/** What operators do about keeping. Each decision leaves a row. */
export interface RetentionDesk {
  decisions(limit: number): Promise<readonly RetentionDecision[]>;
  /** Writes a decision down; resolves with its number. */
  record(
    kind: RetentionDecision["kind"],
    consumer: string,
    subject: string,
    decider: Decider,
  ): Promise<string>;
  /** Identities that a window would let go now, if no source stood still: by a scan of the ledger. */
  countOlder(scope: RetentionScope, windowMs: number): Promise<number>;
  /** In one transaction. The identity stays, and so does that it was applied. */
  erase(request: EraseRequest, decider: Decider): Promise<EraseOutcome>;
}

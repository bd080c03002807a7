/** An effect as it was asked for, checked. */
export interface AskedEffect {
  readonly destination: string;
  readonly tenant: string;
  readonly producer: string;
  readonly id: string;
  readonly key: string | undefined;
  readonly type: string | undefined;
  readonly time: Date | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly payload: Uint8Array | string | null;
  /** Not to be sent before, in milliseconds from now by the database's clock. */
  readonly delayMs: number | undefined;
  /** Not to be sent after, in milliseconds from now by the database's clock. */
  readonly lifetimeMs: number | undefined;
}

/** An effect on its way into the outbox. */
export interface NewEffect extends AskedEffect {
  /** 32 hex digits over destination, tenant, producer and id. */
  readonly digest: string;
  /** 0 to 63; the same for all effects of a key. */
  readonly lane: number;
  readonly payload: Uint8Array | null;
  /** SHA-256 of the payload in hex digits; `""` for none. */
  readonly fingerprint: string;
}

/** An effect that was asked for before. */
export interface KnownEffect {
  readonly digest: string;
  readonly fingerprint: string;
}

/** The right to send the effects of a destination's lane, for a time. */
export interface EffectLease {
  readonly lane: number;
  /** A number, as text. Another taking of the same lane has a higher one. */
  readonly token: string;
}

/** An effect in the hands of a relay. */
export interface TakenEffect {
  readonly lease: EffectLease;
  /** Its place in the order in which effects were asked for: a number, as text. */
  readonly position: string;
  /** Failed attempts so far. */
  readonly attempts: number;
  /** Those of them that may be its own fault. */
  readonly counted: number;
  /** Its time is over: it must not be sent. */
  readonly expired: boolean;
  /** Since it was asked for, in milliseconds. */
  readonly waitedMs: number;
  readonly digest: string;
  readonly tenant: string;
  readonly producer: string;
  readonly id: string;
  readonly key: string | undefined;
  readonly type: string | undefined;
  readonly time: Date | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly payload: Uint8Array | null;
  /** Why the body could not be opened; the payload is null and the headers are empty then. */
  readonly sealed: Error | undefined;
}

export interface EffectTakeRequest {
  readonly relayId: string;
  readonly leaseMs: number;
  readonly maxLanes: number;
  readonly maxEffects: number;
  readonly maxBytes: number;
}

export interface TakenEffects {
  readonly effects: readonly TakenEffect[];
  /** True: ask again at once, there was more to look through. */
  readonly more: boolean;
}

/**
 * What an attempt came to. `sent`: confirmed. `failed`: certainly not taken. `ambiguous`: nobody knows. `rejected`:
 * refused for good. `expired`: its time was over, it was not sent.
 */
export type AttemptOutcome = "sent" | "failed" | "ambiguous" | "rejected" | "expired";

/** What is to become of an effect in hand. */
export interface Verdict {
  readonly lease: EffectLease;
  readonly position: string;
  /**
   * `remove`: done with. `scheduled`: again after `delayMs`. `quarantined`: waits for a decision, and its key with it.
   * `aside`: waits for a decision, and its key goes on.
   */
  readonly action: "remove" | "scheduled" | "quarantined" | "aside";
  readonly outcome: AttemptOutcome;
  readonly delayMs: number;
  /** Whether a failed attempt may be the effect's own fault. */
  readonly counts: boolean;
  readonly code: string | undefined;
  readonly error: string | undefined;
  /** The destination's status, where it has such: 503. */
  readonly status: number | undefined;
  /** What the destination answered. */
  readonly result: string | undefined;
  readonly tookMs: number | undefined;
}

/** Effects that wait to be sent. Every method but `send` is a transaction of its own. */
export interface OutboxStore {
  /**
   * Stores effects, no two with the same digest, in the caller's own open transaction; resolves with those that were not
   * new, of which nothing is stored. Rejects with `not-a-transaction` before anything is written if `tx` is none.
   */
  send(tx: unknown, effects: readonly NewEffect[]): Promise<readonly KnownEffect[]>;
  /** Makes the lanes of these destinations. Twice is harmless. */
  openLanes(destinations: readonly string[]): Promise<void>;
  /**
   * Which of these destinations have something to send now, in whose hands ever it is. `fromMarks`: in a way that costs
   * more, and the same while an old snapshot keeps what was sent in the indexes.
   */
  waiting(destinations: readonly string[], fromMarks?: boolean): Promise<readonly string[]>;
  /** Takes free lanes of a destination that have work, with what may be sent in them, in order. */
  take(destination: string, request: EffectTakeRequest): Promise<TakenEffects>;
  /**
   * Writes what became of effects, each with its attempt, and gives lanes back; resolves with the positions that are not
   * this relay's any more, of which nothing was written. All or none. Twice is harmless.
   */
  settle(
    destination: string,
    relayId: string,
    verdicts: readonly Verdict[],
    done: readonly EffectLease[],
  ): Promise<readonly string[]>;
  /** Prolongs leases and resolves with those that are still held. */
  renew(
    destination: string,
    leases: readonly EffectLease[],
    leaseMs: number,
  ): Promise<readonly EffectLease[]>;
}

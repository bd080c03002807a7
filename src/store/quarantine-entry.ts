import type { Fingerprint } from "../message/fingerprint.ts";

/** A message on its way to quarantine. Everything in it is hostile: any length, any character. */
export interface QuarantineInsert {
  /** The checked identity, with its digest; `undefined` where none could be read. */
  readonly identity:
    | { readonly digest: string; readonly tenant: string; readonly producer: string; readonly id: string }
    | undefined;
  /** What came in place of an identity, any type. */
  readonly rawIdentity: unknown;
  readonly key: string | undefined;
  readonly type: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly payload: Uint8Array | null;
  readonly fingerprint: Fingerprint;
  readonly code: string;
  readonly error: string;
  /** Failed attempts that counted. */
  readonly attempts: number;
}

/** A line of `inbox quarantine list`. Times are the database's. */
export interface QuarantineRow {
  /** A number, as text: it may pass 2^53. */
  readonly id: string;
  readonly status: "open" | "retried" | "repaired" | "discarded";
  readonly consumer: string;
  /** `undefined` where no identity could be read. */
  readonly tenant: string | undefined;
  readonly producer: string | undefined;
  readonly messageId: string | undefined;
  readonly code: string;
  readonly error: string;
  readonly attempts: number;
  /** How often this body came. */
  readonly deliveries: number;
  readonly payloadBytes: number;
  readonly firstFailedAt: Date;
  readonly lastFailedAt: Date;
  readonly handlerVersion: string;
}

/** One entry, whole. */
export interface QuarantineEntry extends QuarantineRow {
  readonly rawIdentity: string | undefined;
  readonly key: string | undefined;
  readonly type: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  /** `null` for a message without a body. */
  readonly payload: Uint8Array | null;
  readonly fingerprint: string;
  readonly fingerprintMode: string;
}

export interface QuarantineFilter {
  readonly consumer?: string | undefined;
  readonly code?: string | undefined;
  /** Default `open`. */
  readonly status?: QuarantineRow["status"] | "all" | undefined;
  /** Entries after this one, in the list's order. */
  readonly after?: string | undefined;
  /** Default 100, at most 1,000. */
  readonly limit?: number | undefined;
}

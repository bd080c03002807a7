import type { Fingerprint, FingerprintMode } from "./fingerprint.ts";

/** Who sent what: the part of a message's name that its producer chose. The consumer's name completes the key. */
export interface Identity {
  /** `""` where there are no tenants. Comes from the connection or the topic, never from an unverified payload. */
  readonly tenant: string;
  readonly producer: string;
  readonly id: string;
}

/** What a caller gives. Strings are payloads in UTF-8; `null` is a tombstone and is legal. */
export interface MessageInput {
  /** Default `""`. At most 256 bytes. */
  readonly tenant?: string | undefined;
  /** Who sent it, 1 to 512 bytes: ids are the producer's own, and unique for it. */
  readonly producer: string;
  /** The producer's name for it, the same in every copy: see docs/identity.md. 1 to 1,024 bytes. */
  readonly id: string;
  readonly payload: Uint8Array | string | null;
  /** Messages of one key are handled in their order; the key also decides the lane. */
  readonly key?: string | undefined;
  /** What kind of message it is, for handlers and for filters of the operator's. */
  readonly type?: string | undefined;
  /** When the producer says it happened. */
  readonly time?: Date | undefined;
  /** What came with it. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** A message whose identity has been checked. `Data` is what the consumer's schema makes of the payload. */
export interface Message<Data = unknown> extends Identity {
  readonly key: string | undefined;
  readonly type: string | undefined;
  readonly time: Date | undefined;
  readonly headers: Readonly<Record<string, string>>;
  /** The payload as it came; `null` is a tombstone. */
  readonly bytes: Uint8Array | null;
  /** The payload as strict UTF-8, `null` for a tombstone. Throws `malformed` on other bytes. */
  text(): string | null;
  /** The payload through JSON.parse, `null` for a tombstone. Throws `malformed`. Parsed once. */
  json(): unknown;
  /** The payload as the consumer's schema read it; `undefined` where the consumer has no schema. */
  readonly data: Data;
  /** Computed once a mode. */
  fingerprint(mode: FingerprintMode): Fingerprint;
}

/** A delivery that cannot become a message. It keeps all it came with, so that quarantine loses nothing. */
export interface RejectedMessage {
  readonly rejected: { readonly code: RejectionCode; readonly text: string };
  /** As much of the identity as could be read, unchecked: it may hold anything. */
  readonly identity: { readonly tenant?: unknown; readonly producer?: unknown; readonly id?: unknown };
  readonly key: string | undefined;
  readonly type: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly bytes: Uint8Array | null;
}

/** Why a delivery is no message. */
export type RejectionCode =
  "no-identity" | "invalid-identity" | "identity-too-long" | "malformed" | "too-large" | "unsafe-xml";

/** What a source hands over: a message, or what cannot be one. */
export type Received = Message | RejectedMessage;

/** Whether a delivery is no message and goes to quarantine. */
export const isRejected = (received: Received): received is RejectedMessage => "rejected" in received;

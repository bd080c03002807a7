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
  readonly tenant?: string | undefined;
  readonly producer: string;
  readonly id: string;
  readonly payload: Uint8Array | string | null;
  /** Messages of one key are handled in their order; the key also decides the lane. */
  readonly key?: string | undefined;
  readonly type?: string | undefined;
  /** When the producer says it happened. */
  readonly time?: Date | undefined;
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

export type RejectionCode =
  "no-identity" | "invalid-identity" | "identity-too-long" | "malformed" | "too-large" | "unsafe-xml";

export type Received = Message | RejectedMessage;

export const isRejected = (received: Received): received is RejectedMessage => "rejected" in received;

import type { RejectedMessage, RejectionCode } from "./message.ts";

/** What is known of a delivery that cannot become a message. */
export interface Rejection {
  readonly code: RejectionCode;
  /** What is wrong, for people: hostile values in it must have gone through `showValue`. */
  readonly text: string;
  readonly identity?: RejectedMessage["identity"] | undefined;
  readonly key?: string | undefined;
  readonly type?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly bytes: Uint8Array | null;
}

const noHeaders: Readonly<Record<string, string>> = Object.freeze({});

/** A rejected message. For formats and sources that cannot even read an identity. */
export const rejectMessage = (rejection: Rejection): RejectedMessage => ({
  rejected: { code: rejection.code, text: rejection.text },
  identity: rejection.identity ?? {},
  key: rejection.key,
  type: rejection.type,
  headers: rejection.headers ?? noHeaders,
  bytes: rejection.bytes,
});

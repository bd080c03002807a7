/**
 * How two payloads are compared, in the form that is stored beside the fingerprint:
 * `b` the bytes; `j` canonical JSON; `j-/a,/b/c` canonical JSON without these JSON pointers.
 */
export type FingerprintMode = "b" | `j${string}`;

/** `digest`: SHA-256 as 64 lower-case hex digits, or `""` for a tombstone (so that it equals no body's). */
export interface Fingerprint {
  readonly mode: FingerprintMode;
  readonly digest: string;
}

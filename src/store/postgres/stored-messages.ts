import type { Lease, PendingMessage, StoredMessage } from "../pending.ts";
import type { Protection } from "../protection.ts";
import type { FingerprintMode } from "../../message/fingerprint.ts";
import { bodyArray, byteaArray, hexArray, nullableTextArray, textArray } from "./array.ts";
import { safeJson } from "./safe-text.ts";

/** The parameters that carry messages with their bodies, the bodies sealed where there is a key. */
export interface StoredParameters {
  /** Digests, tenants, producers, ids, fingerprints, modes. */
  readonly identities: readonly string[];
  /** Keys, types, times, headers, payloads, names of payload keys. */
  readonly bodies: readonly string[];
}

/** Rejects with `payload-key-missing` if bodies are to be sealed and there is no key: then nothing may be stored. */
export async function storedParameters(
  protection: Protection,
  consumer: string,
  messages: readonly StoredMessage[],
): Promise<StoredParameters> {
  const bodies = await Promise.all(
    messages.map(({ digest, headers, payload }) =>
      // JSON escapes NUL and lone surrogates, so headers stay exact whatever they hold.
      protection.seal(
        { consumer, digest },
        { headers, payload },
        safeJson(headers, Number.POSITIVE_INFINITY),
      ),
    ),
  );
  return {
    identities: [
      hexArray(messages.map(({ digest }) => digest)),
      textArray(messages.map(({ tenant }) => tenant)),
      textArray(messages.map(({ producer }) => producer)),
      textArray(messages.map(({ id }) => id)),
      byteaArray(messages.map(({ fingerprint }) => fingerprint.digest)),
      textArray(messages.map(({ fingerprint }) => fingerprint.mode)),
    ],
    bodies: [
      nullableTextArray(messages.map(({ key }) => key)),
      nullableTextArray(messages.map(({ type }) => type)),
      nullableTextArray(messages.map(({ time }) => isoOf(time))),
      textArray(bodies.map(({ headers }) => headers)),
      bodyArray(bodies.map(({ payload }) => payload)),
      nullableTextArray(bodies.map(({ keyId }) => keyId ?? undefined)),
    ],
  };
}

/** An invalid date says nothing. */
const isoOf = (time: Date | undefined): string | undefined =>
  time === undefined || Number.isNaN(time.getTime()) ? undefined : time.toISOString();

/** A row of `take`; all null where it only says that there is more. */
export interface TakenRow {
  readonly lease_lane: number;
  readonly token: string;
  readonly suspect: boolean;
  readonly digest: string | null;
  readonly place: string;
  readonly attempts: number;
  readonly deferrals: number;
  readonly tenant: string;
  readonly producer: string;
  readonly message_id: string;
  readonly message_key: string | null;
  readonly message_type: string | null;
  readonly message_time: string | null;
  readonly headers: string;
  readonly payload_hex: string | null;
  readonly payload_key_id: string | null;
  readonly fingerprint: string;
  readonly fingerprint_mode: FingerprintMode;
}

/** A message as it was stored, opened. Never rejects: a body that does not open is told in `sealed`. */
export async function pendingMessage(
  protection: Protection,
  consumer: string,
  row: TakenRow & { readonly digest: string },
): Promise<PendingMessage> {
  const digest = row.digest.replaceAll("-", "");
  const payload = row.payload_hex === null ? null : Buffer.from(row.payload_hex, "hex");
  const stored = { payload, headers: row.headers, keyId: row.payload_key_id };
  let sealed: Error | undefined;
  const body = await protection.open({ consumer, digest }, stored).catch((error: unknown) => {
    sealed = error as Error;
    return { payload: null, headers: {} };
  });
  const lease: Lease = { lane: row.lease_lane, token: row.token };
  return {
    ...{ digest, tenant: row.tenant, producer: row.producer, id: row.message_id },
    fingerprint: { mode: row.fingerprint_mode, digest: row.fingerprint },
    key: row.message_key ?? undefined,
    type: row.message_type ?? undefined,
    time: row.message_time === null ? undefined : new Date(row.message_time),
    headers: body.headers,
    payload: body.payload,
    ...{ lease, position: row.place, attempts: row.attempts, deferrals: row.deferrals },
    ...{ suspect: row.suspect, sealed },
  };
}

import type { TakenEffect } from "../outbox.ts";
import type { Protection } from "../protection.ts";
import { bodyOwner } from "./outbox-send.ts";

/** A row of `outbox_take`; all null where it only says that there is more. */
export interface TakenEffectRow {
  readonly lease_lane: number;
  readonly token: string;
  readonly place: string;
  readonly attempts: number;
  readonly counted: number;
  readonly expired: boolean;
  readonly waited_ms: string;
  readonly digest: string | null;
  readonly tenant: string;
  readonly producer: string;
  readonly effect_id: string;
  readonly effect_key: string | null;
  readonly effect_type: string | null;
  readonly effect_time: string | null;
  readonly headers: string;
  readonly payload_hex: string | null;
  readonly payload_key_id: string | null;
}

/** An effect as it was stored, opened. Never rejects: a body that does not open is told in `sealed`. */
export async function takenEffect(
  protection: Protection,
  destination: string,
  row: TakenEffectRow & { readonly digest: string },
): Promise<TakenEffect> {
  // PostgreSQL prints a uuid with dashes.
  const digest = row.digest.replaceAll("-", "");
  const payload = row.payload_hex === null ? null : Buffer.from(row.payload_hex, "hex");
  const stored = { payload, headers: row.headers, keyId: row.payload_key_id };
  let sealed: Error | undefined;
  const body = await protection.open(bodyOwner(destination, digest), stored).catch((error: unknown) => {
    sealed = error as Error;
    return { payload: null, headers: {} };
  });
  return {
    lease: { lane: Number(row.lease_lane), token: row.token },
    ...{ position: row.place, attempts: row.attempts, counted: row.counted, expired: row.expired },
    ...{ waitedMs: Number(row.waited_ms), digest },
    ...{ tenant: row.tenant, producer: row.producer, id: row.effect_id },
    key: row.effect_key ?? undefined,
    type: row.effect_type ?? undefined,
    time: row.effect_time === null ? undefined : new Date(row.effect_time),
    ...{ headers: body.headers, payload: body.payload, sealed },
  };
}

import { InboxError } from "../errors.ts";
import { showValue } from "../message/show-value.ts";
import { decodeUtf8 } from "../message/utf8.ts";
import type { TakenEffect } from "../store/outbox.ts";

/** An effect as its destination sees it. */
export interface Effect {
  readonly destination: string;
  readonly tenant: string;
  readonly producer: string;
  /** The same on every attempt: what the receiving side must know it by. */
  readonly id: string;
  readonly key: string | undefined;
  readonly type: string | undefined;
  readonly time: Date | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly payload: Uint8Array | null;
  /** 32 hex digits that stand for destination, tenant, producer and id, for where these do not fit. */
  readonly digest: string;
  /** Which attempt this is, as far as is known: 1, 2, … */
  readonly attempt: number;
  /** Since it was asked for, in milliseconds by the database's clock. */
  readonly waitedMs: number;
  /** The payload as strict UTF-8, `null` for none. Throws `malformed` on other bytes. */
  text(): string | null;
  /** The payload through JSON.parse, `null` for none. Throws `malformed`. */
  json(): unknown;
}

export function effectOf(destination: string, taken: TakenEffect): Effect {
  const { tenant, producer, id, key, type, time, headers, payload, digest, attempts, waitedMs } = taken;
  const text = (): string | null => {
    if (payload === null) return null;
    const decoded = decodeUtf8(payload);
    if (decoded === undefined) throw malformed(id, "UTF-8");
    return decoded;
  };
  return {
    ...{ destination, tenant, producer, id, key, type, time, headers, payload, digest, waitedMs },
    attempt: attempts + 1,
    text,
    json() {
      const read = text();
      try {
        return read === null ? null : (JSON.parse(read) as unknown);
      } catch (cause) {
        throw malformed(id, "JSON", cause);
      }
    },
  };
}

const malformed = (id: string, what: string, cause?: unknown): InboxError =>
  new InboxError("malformed", `The payload of effect ${showValue(id)} is no ${what}.`, { cause });

import type { StandardSchemaV1 } from "@standard-schema/spec";
import { InboxError } from "../errors.ts";
import { createMessage } from "../message/create-message.ts";
import { identityDigest } from "../message/identity.ts";
import type { Message } from "../message/message.ts";
import { validateData } from "../message/schema.ts";
import { showValue } from "../message/show-value.ts";
import type { QuarantineEntry } from "../store/quarantine-entry.ts";
import type { RepairRequest } from "../store/quarantine-store.ts";

/** What to change about an entry's message. What is left out stays as it came. */
export interface RepairInput {
  /** Strings are UTF-8; `null` is a message without a body. */
  readonly payload?: Uint8Array | string | null | undefined;
  /** An identity for an entry that has none, or for the second body of a conflict. */
  readonly tenant?: string | undefined;
  readonly producer?: string | undefined;
  readonly id?: string | undefined;
  readonly key?: string | undefined;
  readonly type?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** The entry's message with the changes. Throws `decision-needs` for an identity that is none, or a wrong content. */
export function repairedMessage(entry: QuarantineEntry, changes: RepairInput): Message {
  const came = identityThatCame(entry);
  try {
    return createMessage({
      tenant: changes.tenant ?? came.tenant,
      // What is missing is refused by the check of the input.
      producer: changes.producer ?? came.producer ?? "",
      id: changes.id ?? came.id ?? "",
      payload: changes.payload === undefined ? entry.payload : changes.payload,
      key: changes.key ?? entry.key,
      type: changes.type ?? entry.type,
      time: entry.time,
      headers: changes.headers ?? entry.headers,
    });
  } catch (cause) {
    const text = cause instanceof InboxError ? cause.message : "The repaired message is none.";
    throw new InboxError("decision-needs", `Entry ${entry.id} cannot be repaired so. ${text}`, { cause });
  }
}

/** What a repair asks the store for. Throws `decision-needs` if nothing is changed, and `invalid-payload` by the schema. */
export async function repairRequest(
  entry: QuarantineEntry,
  changes: RepairInput,
  schema: StandardSchemaV1 | undefined,
): Promise<RepairRequest> {
  const message = repairedMessage(entry, changes);
  const { tenant, producer, id, key, type, headers, bytes: payload } = message;
  if (isSame(entry, message)) {
    const text = `The repair of entry ${entry.id} changes nothing. Retry the entry instead.`;
    throw new InboxError("decision-needs", text);
  }
  if (schema !== undefined) {
    const validation = await validateData(schema, message);
    if (!validation.ok) throw validation.error;
  }
  return {
    identity: { tenant, producer, id },
    digest: identityDigest(entry.consumer, { tenant, producer, id }),
    ...{ key, type, headers, payload },
    fingerprint: message.fingerprint(entry.fingerprintMode),
  };
}

function isSame(entry: QuarantineEntry, message: Message): boolean {
  const sameBody =
    entry.payload === null || message.bytes === null
      ? entry.payload === message.bytes
      : Buffer.compare(entry.payload, message.bytes) === 0;
  return (
    sameBody &&
    entry.messageId === message.id &&
    entry.producer === message.producer &&
    entry.tenant === message.tenant &&
    entry.key === message.key &&
    entry.type === message.type &&
    JSON.stringify(entry.headers) === JSON.stringify(message.headers)
  );
}

interface CameIdentity {
  readonly tenant: string | undefined;
  readonly producer: string | undefined;
  readonly id: string | undefined;
}

/** The entry's identity, or those parts of one that could be read from what came. */
function identityThatCame({ tenant, producer, messageId, rawIdentity }: QuarantineEntry): CameIdentity {
  if (messageId !== undefined || rawIdentity === undefined) return { tenant, producer, id: messageId };
  let raw: unknown;
  try {
    raw = JSON.parse(rawIdentity);
  } catch {
    raw = undefined;
  }
  const part = (name: string): string | undefined => {
    if (typeof raw !== "object" || raw === null || !Object.hasOwn(raw, name)) return undefined;
    const value = (raw as Record<string, unknown>)[name];
    return typeof value === "string" && value !== "" ? value : undefined;
  };
  return { tenant: part("tenant"), producer: part("producer"), id: part("id") };
}

/** For an entry that is not there. */
export const entryMissing = (id: string): InboxError =>
  new InboxError("entry-missing", `There is no entry ${showValue(id)} in quarantine, or it was purged.`);

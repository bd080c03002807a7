import { hash } from "node:crypto";
import { computeFingerprint } from "../../src/message/fingerprint.ts";
import { identityDigest } from "../../src/message/identity.ts";
import { migrate } from "../../src/store/postgres/migrate.ts";
import { postgres, type PostgresOptions } from "../../src/store/postgres/postgres.ts";
import type { StoredMessage } from "../../src/store/pending.ts";
import type { QuarantineInsert } from "../../src/store/quarantine-entry.ts";
import type { Store } from "../../src/store/store.ts";
import type { Scope } from "../support/cleanup.ts";
import { testDatabase, type TestDatabase } from "../support/postgres.ts";

export const consumer = "accounting";

export const ann = { by: "ann", why: "the account is there now" };

export interface TestStore extends TestDatabase {
  readonly store: Store;
}

/** A store over tables of the test's own. */
export async function testStore(t: Scope, options: Omit<PostgresOptions, "schema"> = {}): Promise<TestStore> {
  const database = await testDatabase(t);
  await migrate(database.pool, { schema: database.schema });
  return { ...database, store: postgres(database.pool, { ...options, schema: database.schema }) };
}

export interface PutOptions extends Partial<Omit<QuarantineInsert, "identity" | "fingerprint" | "payload">> {
  readonly payload?: Uint8Array | string | null;
  readonly tenant?: string;
  readonly producer?: string;
  /** Without identity: a delivery that named none. */
  readonly named?: boolean;
}

/** Puts a message of the shop into quarantine, as the inbox would. */
export async function put(store: Store, id: string, options: PutOptions = {}): Promise<void> {
  const { payload = "{}", tenant = "", producer = "shop", named = true, ...more } = options;
  const body = typeof payload === "string" ? Buffer.from(payload) : payload;
  await store.quarantine(
    { consumer, handlerVersion: "3" },
    {
      identity: named
        ? { digest: identityDigest(consumer, { tenant, producer, id }), tenant, producer, id }
        : undefined,
      rawIdentity: undefined,
      key: undefined,
      type: undefined,
      headers: {},
      payload: body,
      fingerprint: computeFingerprint("b", body),
      code: "handler-rejected",
      error: `no account ${id}`,
      attempts: 1,
      ...more,
    },
  );
}

/** The entry of a message, by its id. */
export async function entryId(store: Store, messageId: string): Promise<string> {
  const rows = await store.quarantined.list({ messageId, status: "all", limit: 1 });
  const id = rows[0]?.id;
  if (id === undefined) throw new Error(`There is no entry of ${messageId}.`);
  return id;
}

/** A message of the shop as the store keeps it in pending. */
export function storedMessage(id: string, more: Partial<StoredMessage> = {}): StoredMessage {
  const identity = { tenant: "", producer: "shop", id };
  const payload = Buffer.from(`{"id":"${id}"}`);
  return {
    ...identity,
    digest: identityDigest(consumer, identity),
    fingerprint: { mode: "b", digest: hash("sha256", payload, "hex") },
    ...{ key: undefined, type: undefined, time: undefined, headers: {}, payload },
    ...more,
  };
}

import type { TestContext } from "node:test";
import { identityDigest } from "../../src/message/identity.ts";
import { computeFingerprint } from "../../src/message/fingerprint.ts";
import type { Difference } from "../../src/reconcile/difference.ts";
import { reconcile, type ReconcileReport } from "../../src/reconcile/reconcile.ts";
import type { ReconcileOptions } from "../../src/reconcile/options.ts";
import { migrate } from "../../src/store/postgres/migrate.ts";
import { testDatabase, type TestDatabase } from "../support/postgres.ts";

export interface Row {
  readonly id: string;
  readonly producer?: string;
  readonly tenant?: string;
  readonly payload?: string | null;
  /** When it was applied; null: not applied. */
  readonly at?: Date | null;
  readonly mode?: "b" | "j";
}

export const hoursAgo = (hours: number): Date => new Date(Date.now() - hours * 3_600_000);

/** A ledger of the consumer "accounting" with rows written straight into it, and a comparison that keeps what it is told. */
export async function ledgerCase(t: TestContext, url?: string) {
  const database: TestDatabase = await testDatabase(t, { url });
  const { pool, schema } = database;
  await migrate(pool, { schema });
  const fill = async (rows: readonly Row[], consumer = "accounting"): Promise<void> => {
    await pool.query(
      `insert into message (digest, processed_at, consumer, tenant, producer, message_id, fingerprint, fingerprint_mode, handler_version)
       select digest::uuid, at::timestamptz, $1, tenant, producer, id, decode(fingerprint, 'hex'), mode, ''
         from jsonb_to_recordset($2::jsonb) as r (digest text, at text, tenant text, producer text, id text, fingerprint text, mode text)`,
      [
        consumer,
        JSON.stringify(
          rows.map(
            ({ id, producer = "payments", tenant = "", payload = id, at = hoursAgo(1), mode = "b" }) => ({
              digest: identityDigest(consumer, { tenant, producer, id }),
              ...{ at, tenant, producer, id, mode },
              fingerprint: computeFingerprint(mode, payload).digest,
            }),
          ),
        ),
      ],
    );
  };
  const compare = async (
    options: Omit<ReconcileOptions, "consumer" | "schema" | "onDifference"> & { readonly consumer?: string },
  ): Promise<{ report: ReconcileReport; told: Difference[]; ids: Record<string, string[]> }> => {
    const told: Difference[] = [];
    const report = await reconcile(pool, {
      consumer: "accounting",
      ...options,
      schema,
      onDifference: (difference) => void told.push(difference),
    });
    const ids: Record<string, string[]> = {};
    for (const { kind, id } of told) (ids[kind] ??= []).push(id);
    for (const list of Object.values(ids)) list.sort();
    return { report, told, ids };
  };
  return { ...database, fill, compare };
}

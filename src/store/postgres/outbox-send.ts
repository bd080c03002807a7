import { causes, hasCode } from "../../errors.ts";
import type { KnownEffect, NewEffect } from "../outbox.ts";
import type { BodyOwner, Protection } from "../protection.ts";
import type { Statement } from "../statement.ts";
import { bodyArray, byteaArray, hexArray, nullableTextArray, numberArray, textArray } from "./array.ts";
import { userTransaction } from "./drivers/user-transaction.ts";
import { aborted, notATransaction, openTransaction } from "./open-transaction.ts";
import { safeJson } from "./safe-text.ts";
import type { OutboxSql } from "./sql/outbox.ts";

const caller = "outbox.send";

/** Stores effects in a transaction that somebody else opened and will end. */
export async function sendEffects(
  tx: unknown,
  sql: OutboxSql,
  protection: Protection,
  effects: readonly NewEffect[],
): Promise<readonly KnownEffect[]> {
  const transaction = userTransaction(tx, caller);
  if (effects.length === 0) return [];
  const proof = await openTransaction(transaction, caller);
  const statement = await sendStatement(sql, protection, proof, effects, false);
  try {
    return knownFrom(await transaction.query<SentRow>(statement.text, statement.values));
  } catch (error) {
    // The function refuses before it writes.
    if (hasCode(error, "25P01")) throw notATransaction(caller, "Two statements ran in two transactions.");
    if (hasCode(error, "25P02")) throw aborted(caller);
    throw error;
  }
}

export interface SentRow {
  /** Null if all were new. */
  readonly not_new: string | null;
}

/**
 * `proof`: what `transaction_timestamp()` was in the transaction; `undefined` where it is known to be open. `strict`: an
 * effect with another payload under the same id fails the statement, and with it the transaction.
 */
export async function sendStatement(
  sql: OutboxSql,
  protection: Protection,
  proof: string | undefined,
  effects: readonly NewEffect[],
  strict: boolean,
): Promise<Statement & { readonly values: readonly unknown[] }> {
  const bodies = await Promise.all(
    effects.map(({ destination, digest, headers, payload }) =>
      protection.seal(
        bodyOwner(destination, digest),
        { headers, payload },
        safeJson(headers, Number.POSITIVE_INFINITY),
      ),
    ),
  );
  return {
    text: sql.sendEffects,
    values: [
      proof ?? null,
      textArray(effects.map(({ destination }) => destination)),
      hexArray(effects.map(({ digest }) => digest)),
      numberArray(effects.map(({ lane }) => lane)),
      textArray(effects.map(({ tenant }) => tenant)),
      textArray(effects.map(({ producer }) => producer)),
      textArray(effects.map(({ id }) => id)),
      nullableTextArray(effects.map(({ key }) => key)),
      nullableTextArray(effects.map(({ type }) => type)),
      nullableTextArray(effects.map(({ time }) => time?.toISOString())),
      textArray(bodies.map(({ headers }) => headers)),
      bodyArray(bodies.map(({ payload }) => payload)),
      nullableTextArray(bodies.map(({ keyId }) => keyId ?? undefined)),
      byteaArray(effects.map(({ fingerprint }) => fingerprint)),
      nullableNumbers(effects.map(({ delayMs }) => delayMs)),
      nullableNumbers(effects.map(({ lifetimeMs }) => lifetimeMs)),
      strict,
    ],
  };
}

/** The digest of the effect for which a strict statement failed; `undefined` for any other error. */
export function conflictIn(error: unknown): string | undefined {
  if (!hasCode(error, "23505")) return undefined;
  for (const link of causes(error)) {
    const { detail } = link as { detail?: unknown };
    const [, digest] = /^outbox effect ([0-9a-f-]{36})$/.exec(typeof detail === "string" ? detail : "") ?? [];
    if (digest !== undefined) return digest.replaceAll("-", "");
  }
  return undefined;
}

/** Effects that were asked for before. */
export function knownFrom({ rows }: { readonly rows: readonly SentRow[] }): readonly KnownEffect[] {
  const text = rows[0]?.not_new ?? null;
  if (text === null) return [];
  return (JSON.parse(text) as [digest: string, fingerprint: string | null][]).map(
    ([digest, fingerprint]) => ({
      // PostgreSQL prints a uuid with dashes.
      digest: digest.replaceAll("-", ""),
      fingerprint: fingerprint ?? "",
    }),
  );
}

/** What a sealed effect is bound to. */
export const bodyOwner = (destination: string, digest: string): BodyOwner => ({
  consumer: `outbox:${destination}`,
  digest,
});

const nullableNumbers = (values: readonly (number | undefined)[]): string =>
  `{${values.map((value) => value ?? "NULL").join(",")}}`;

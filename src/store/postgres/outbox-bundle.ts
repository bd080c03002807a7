import type { AskedEffect } from "../outbox.ts";
import type { Statement } from "../statement.ts";
import { nullableTextArray, textArray } from "./array.ts";
import { safeJson } from "./safe-text.ts";
import type { OutboxSql } from "./sql/outbox.ts";

/** Stores effects to one destination as one row. What is the database's to compute is left to whoever unpacks it. */
export function bundleStatement(
  sql: OutboxSql,
  effects: readonly AskedEffect[],
): Statement & { readonly values: readonly unknown[] } {
  return {
    text: sql.bundleEffects,
    values: [
      effects[0]!.destination,
      textArray(effects.map(({ tenant }) => tenant)),
      textArray(effects.map(({ producer }) => producer)),
      textArray(effects.map(({ id }) => id)),
      nullableTextArray(effects.map(({ key }) => key)),
      nullableTextArray(effects.map(({ type }) => type)),
      nullableTextArray(effects.map(({ time }) => time?.toISOString())),
      textArray(effects.map(({ headers }) => headersText(headers))),
      base64Array(effects.map(({ payload }) => payload)),
      effects.length,
    ],
  };
}

function headersText(headers: Readonly<Record<string, string>>): string {
  for (const _ in headers) return safeJson(headers, Number.POSITIVE_INFINITY);
  return "{}";
}

/** A `text[]` of bodies in base64, a third shorter than in hex digits. */
const base64Array = (bodies: readonly (Uint8Array | string | null)[]): string =>
  `{${bodies.map((body) => (body === null ? "NULL" : `"${base64Of(body)}"`)).join(",")}}`;

const base64Of = (body: Uint8Array | string): string =>
  (typeof body === "string"
    ? Buffer.from(body)
    : Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  ).toString("base64");

import type {
  DestinationStatus,
  EffectAttempt,
  EffectFacts,
  NamedEffect,
  RefusedEffect,
  RefusedFilter,
  RefusedGroup,
  RefusedListOptions,
  StoredRefusedEffect,
  WaitingEffect,
  WaitingListOptions,
} from "../outbox-operator.ts";
import { sealedOverhead, type StoredBody } from "../protection.ts";
import { hexArray, textArray } from "./array.ts";
import type { DriverConnection } from "./driver.ts";
import { isRowId } from "./quarantine-read.ts";
import { safeText } from "./safe-text.ts";
import type { OutboxOperatorSql } from "./sql/outbox-operator.ts";
import type { OutboxStatusSql } from "./sql/outbox-status.ts";

// What PostgreSQL cannot hold matches nothing, which its replacement does not either.
const matchable = (text: string | undefined): string | null =>
  text === undefined ? null : safeText(text, 16_384);

/** The parameters of the filter of refused effects. */
export function refusedValues(filter: RefusedFilter): readonly (string | null)[] {
  const status = filter.status ?? "open";
  return [
    ...[filter.destination, filter.code, filter.group, filter.tenant].map(matchable),
    ...[filter.producer, filter.effectId, filter.type, filter.key].map(matchable),
    filter.since?.toISOString() ?? null,
    filter.until?.toISOString() ?? null,
    matchable(filter.text),
    status === "all" ? null : status,
  ];
}

export async function listRefused(
  connection: DriverConnection,
  sql: OutboxOperatorSql,
  { after, limit, ...filter }: RefusedListOptions,
): Promise<readonly RefusedEffect[]> {
  if (after !== undefined && !isRowId(after)) return [];
  const { rows } = await connection.query<RefusedColumns>(sql.listRefused, [
    ...refusedValues(filter),
    after ?? null,
    Math.min(Math.max(limit ?? 100, 1), 1_000),
  ]);
  return rows.map(toRefused);
}

export async function groupRefused(
  connection: DriverConnection,
  sql: OutboxOperatorSql,
  filter: RefusedFilter,
  limit: number,
): Promise<readonly RefusedGroup[]> {
  const { rows } = await connection.query<GroupColumns>(sql.groupRefused, [
    ...refusedValues(filter),
    Math.min(Math.max(limit, 1), 10_000),
  ]);
  return rows.map((row) => ({
    ...{ destination: row.destination, code: row.code, group: row.error_group, error: row.error },
    ...{ count: row.entries, firstRefusedAt: row.first_refused_at, lastRefusedAt: row.last_refused_at },
    ...{ oldestMs: Math.round(row.oldest_ms), sample: row.sample },
  }));
}

export async function showRefused(
  connection: DriverConnection,
  sql: OutboxOperatorSql,
  id: string,
): Promise<StoredRefusedEffect | undefined> {
  if (!isRowId(id)) return undefined;
  const { rows } = await connection.query<EntryColumns>(sql.showRefused, [id]);
  const row = rows[0];
  if (row === undefined) return undefined;
  return {
    ...toRefused(row),
    digest: row.digest,
    time: row.effect_time === null ? undefined : new Date(row.effect_time),
    body: bodyOf(row.headers, row.payload_hex, row.payload_key_id),
    repaired: bodyOf(row.repaired_headers, row.repaired_payload_hex, row.repaired_key_id),
  };
}

const bodyOf = (headers: string | null, hex: string | null, keyId: string | null): StoredBody | undefined =>
  headers === null ? undefined : { headers, payload: hex === null ? null : Buffer.from(hex, "hex"), keyId };

export async function listWaiting(
  connection: DriverConnection,
  sql: OutboxStatusSql,
  { destination, state, tenant, producer, effectId, key, after, limit }: WaitingListOptions,
): Promise<readonly WaitingEffect[]> {
  if (after !== undefined && !isRowId(after)) return [];
  const { rows } = await connection.query<WaitingColumns>(sql.listWaitingEffects, [
    ...[destination, state, tenant, producer, effectId, key].map(matchable),
    after ?? null,
    Math.min(Math.max(limit ?? 100, 1), 1_000),
  ]);
  return rows.map(toWaiting);
}

export async function outboxStatus(
  connection: DriverConnection,
  sql: OutboxStatusSql,
): Promise<readonly DestinationStatus[]> {
  const { rows } = await connection.query<StatusColumns>(sql.outboxStatus);
  return rows.map((row) => ({
    ...{ destination: row.destination, waiting: row.waiting, due: row.due, scheduled: row.scheduled },
    ...{ behind: row.behind, lanesHeld: row.lanes_held, inHand: row.in_hand, refused: row.refused },
    ...{ oldestMs: rounded(row.oldest_ms), oldestRefusedMs: rounded(row.oldest_refused_ms) },
    ...{ relays: row.relays, paused: row.paused, pausedForMs: rounded(row.paused_for_ms) },
    ...{ lastSentMs: rounded(row.last_sent_ms), lastError: row.last_error ?? undefined },
  }));
}

const rounded = (ms: number | null): number | undefined => (ms === null ? undefined : Math.round(ms));

/**
 * What waits is read before what became of it: an effect that is settled in between is then told by its attempt, and
 * never by neither.
 */
export async function effectFacts(
  connection: DriverConnection,
  sql: OutboxOperatorSql & OutboxStatusSql,
  effects: readonly NamedEffect[],
): Promise<readonly EffectFacts[]> {
  if (effects.length === 0) return [];
  const values = [hexArray(effects.map(({ digest }) => digest))];
  const names = (["destination", "tenant", "producer", "id"] as const).map((field) =>
    textArray(effects.map((effect) => matchable(effect[field]) ?? "")),
  );
  const waiting = await connection.query<WaitingColumns & { digest: string }>(sql.waitingByDigest, values);
  const asked = await connection.query<AskedColumns>(sql.askedEffects, [...values, ...names]);
  const attempts = await connection.query<AttemptColumns>(sql.attemptsOf, values);
  const refusals = await connection.query<RefusedColumns & { digest: string }>(sql.refusalsOf, values);
  const places = new Map(waiting.rows.map((row) => [row.digest, toWaiting(row)]));
  const of = <Row extends { readonly digest: string }>(rows: readonly Row[]): Map<string, Row[]> => {
    const byDigest = new Map<string, Row[]>();
    for (const row of rows) {
      const known = byDigest.get(row.digest);
      if (known === undefined) byDigest.set(row.digest, [row]);
      else known.push(row);
    }
    return byDigest;
  };
  const [attemptsOf, refusalsOf] = [of(attempts.rows), of(refusals.rows)];
  return asked.rows.map(({ digest, recorded_at, ...bundled }) => ({
    ...{ digest, askedAt: recorded_at },
    waiting: places.get(digest) ?? (bundled.position === null ? undefined : toWaiting(bundled)),
    attempts: (attemptsOf.get(digest) ?? []).map(toAttempt),
    refusals: (refusalsOf.get(digest) ?? []).map(toRefused),
  }));
}

interface RefusedColumns {
  readonly id: string;
  readonly status: RefusedEffect["status"];
  readonly destination: string;
  readonly tenant: string;
  readonly producer: string;
  readonly effect_id: string;
  readonly effect_key: string | null;
  readonly effect_type: string | null;
  readonly code: string;
  readonly error: string;
  readonly error_group: string;
  readonly attempts: number;
  readonly payload_bytes: number;
  readonly position: string;
  readonly asked_at: Date;
  readonly refused_at: Date;
  readonly refused_ms: number;
  readonly holds_key: boolean;
  readonly again_of: string | null;
  readonly decision_id: string | null;
  readonly decision_kind: "retry" | "repair" | "discard" | null;
  readonly decided_by: string | null;
  readonly reason: string | null;
  readonly decided_at: Date | null;
}

interface EntryColumns extends RefusedColumns {
  readonly digest: string;
  readonly effect_time: string | null;
  readonly headers: string | null;
  readonly payload_hex: string | null;
  readonly payload_key_id: string | null;
  readonly repaired_headers: string | null;
  readonly repaired_payload_hex: string | null;
  readonly repaired_key_id: string | null;
}

interface GroupColumns {
  readonly destination: string;
  readonly code: string;
  readonly error_group: string;
  readonly error: string;
  readonly entries: number;
  readonly first_refused_at: Date;
  readonly last_refused_at: Date;
  readonly oldest_ms: number;
  readonly sample: string;
}

interface WaitingColumns {
  readonly position: string;
  readonly destination: string;
  readonly tenant: string;
  readonly producer: string;
  readonly effect_id: string;
  readonly effect_key: string | null;
  readonly effect_type: string | null;
  readonly state: WaitingEffect["state"];
  readonly asked_at: Date;
  readonly waited_ms: number;
  readonly due_at: Date | null;
  readonly expires_at: Date | null;
  readonly attempts: number;
  readonly last_code: string | null;
  readonly last_error: string | null;
  readonly payload_bytes: number;
  readonly sealed: boolean;
}

/** With what waits in a bundle, or nulls. */
type AskedColumns = { readonly digest: string; readonly recorded_at: Date } & (
  WaitingColumns | { readonly position: null }
);

interface StatusColumns {
  readonly destination: string;
  readonly waiting: number;
  readonly due: number;
  readonly scheduled: number;
  readonly behind: number;
  readonly lanes_held: number;
  readonly in_hand: number;
  readonly refused: number;
  readonly oldest_ms: number | null;
  readonly oldest_refused_ms: number | null;
  readonly relays: number;
  readonly paused: number;
  readonly paused_for_ms: number | null;
  readonly last_sent_ms: number | null;
  readonly last_error: string | null;
}

interface AttemptColumns {
  readonly digest: string;
  readonly at: Date;
  readonly attempt: number;
  readonly outcome: EffectAttempt["outcome"];
  readonly code: string | null;
  readonly error: string | null;
  readonly status: number | null;
  readonly result: string | null;
  readonly took_ms: number | null;
}

const toRefused = (row: RefusedColumns): RefusedEffect => ({
  ...{ id: row.id, status: row.status, destination: row.destination, tenant: row.tenant },
  ...{ producer: row.producer, effectId: row.effect_id, key: row.effect_key ?? undefined },
  ...{ type: row.effect_type ?? undefined, code: row.code, error: row.error, group: row.error_group },
  ...{ attempts: row.attempts, payloadBytes: row.payload_bytes, position: row.position },
  ...{ askedAt: row.asked_at, refusedAt: row.refused_at, refusedMs: Math.round(row.refused_ms) },
  ...{ holdsKey: row.holds_key, againOf: row.again_of ?? undefined },
  decision:
    row.decision_id === null || row.decision_kind === null || row.decided_at === null
      ? undefined
      : {
          ...{ id: row.decision_id, kind: row.decision_kind, by: row.decided_by ?? "" },
          ...{ why: row.reason ?? "", at: row.decided_at },
        },
});

const toWaiting = (row: WaitingColumns): WaitingEffect => ({
  ...{ position: row.position, destination: row.destination, tenant: row.tenant, producer: row.producer },
  ...{ effectId: row.effect_id, key: row.effect_key ?? undefined, type: row.effect_type ?? undefined },
  ...{ state: row.state, askedAt: row.asked_at, waitedMs: Math.round(row.waited_ms) },
  ...{ dueAt: row.due_at ?? undefined, expiresAt: row.expires_at ?? undefined, attempts: row.attempts },
  ...{ code: row.last_code ?? undefined, error: row.last_error ?? undefined },
  payloadBytes: row.sealed ? Math.max(0, row.payload_bytes - sealedOverhead) : row.payload_bytes,
});

const toAttempt = (row: AttemptColumns): EffectAttempt => ({
  ...{ at: row.at, attempt: row.attempt, outcome: row.outcome, code: row.code ?? undefined },
  ...{ error: row.error ?? undefined, status: row.status ?? undefined, result: row.result ?? undefined },
  tookMs: row.took_ms ?? undefined,
});

import type { FingerprintMode } from "../../message/fingerprint.ts";
import type { Identity } from "../../message/message.ts";
import { recordPlace } from "../../message/record-id.ts";
import type {
  FollowedRecord,
  LaneLease,
  MessageFacts,
  OperatorStore,
  ParkedKey,
  PendingFilter,
  PendingRow,
  PendingState,
} from "../operator-store.ts";
import { sealedOverhead, type Protection } from "../protection.ts";
import type { DriverConnection } from "./driver.ts";
import { isRowId, quarantineHistory } from "./quarantine-read.ts";
import { safeText } from "./safe-text.ts";
import type { PostgresSql } from "./sql/all.ts";

type WithConnection = <T>(use: (connection: DriverConnection) => Promise<T>) => Promise<T>;

/** What operators ask of PostgreSQL. Every method is a transaction of its own. */
export function operatorStore(
  sql: PostgresSql,
  protection: Protection,
  withConnection: WithConnection,
): OperatorStore {
  return {
    listPending: ({ after, limit, ...filter }) =>
      withConnection(async (connection) => {
        if (after !== undefined && !isRowId(after)) return [];
        const values = [...filterValues(filter), after ?? null, Math.min(Math.max(limit ?? 100, 1), 1_000)];
        const { rows } = await connection.query<PendingColumns>(sql.listPending, values);
        return rows.map(toPendingRow);
      }),

    countPending: (filter) =>
      withConnection(async (connection) => {
        const { rows } = await connection.query<{ messages: number }>(sql.countPending, filterValues(filter));
        return rows[0]?.messages ?? 0;
      }),

    async showPending(digest) {
      const row = await withConnection(
        async (connection) => (await connection.query<EntryColumns>(sql.showPending, [digest])).rows[0],
      );
      if (row === undefined) return undefined;
      const payload = row.payload_hex === null ? null : Buffer.from(row.payload_hex, "hex");
      const stored = { payload, headers: row.headers, keyId: row.payload_key_id };
      const body = await protection.open({ consumer: row.consumer, digest }, stored);
      return {
        ...toPendingRow(row),
        ...body,
        time: row.message_time === null ? undefined : new Date(row.message_time),
        fingerprint: row.fingerprint,
        fingerprintMode: row.fingerprint_mode,
        keyId: row.payload_key_id ?? undefined,
      };
    },

    hurry: ({ digest, ...filter }) =>
      withConnection(async (connection) => {
        const values = [...filterValues(filter), digest ?? null];
        return (await connection.query(sql.hurryPending, values)).rowCount ?? 0;
      }),

    find: (id, { consumer, tenant, producer }) =>
      withConnection(async (connection) => {
        const { rows } = await connection.query<IdentityColumns>(
          sql.findIdentities,
          [id, consumer, tenant, producer].map(comparable),
        );
        const found = rows.map((row) => ({
          ...{ consumer: row.consumer, tenant: row.tenant, producer: row.producer, id: row.message_id },
        }));
        const place = recordPlace(id);
        if (found.length > 0 || place === undefined) return found;
        // A record that went well has no row of its own, and nothing keeps its tenant.
        const logs = await connection.query<{ consumer: string; producer: string }>(
          sql.findRecords,
          [place.incarnation, place.part, consumer, producer].map(comparable),
        );
        return logs.rows.map((row) => ({ ...row, tenant: tenant ?? "", id }));
      }),

    facts: (consumer, identity, digest) =>
      withConnection((connection) => readFacts(connection, sql, consumer, identity, digest)),
  };
}

/** What PostgreSQL cannot hold matches nothing, which its replacement does not either. */
const comparable = (text: string | undefined): string | null =>
  text === undefined ? null : safeText(text, 16_384);

const filterValues = (filter: PendingFilter): readonly (string | null)[] =>
  [
    ...[filter.consumer, filter.state, filter.tenant, filter.producer, filter.messageId],
    ...[filter.key, filter.type, filter.code],
  ].map(comparable);

/** All statements see one moment. */
async function readFacts(
  connection: DriverConnection,
  sql: PostgresSql,
  consumer: string,
  { tenant, producer, id }: Identity,
  digest: string,
): Promise<MessageFacts> {
  await connection.query("begin isolation level repeatable read read only");
  const ledger = (await connection.query<LedgerColumns>(sql.ledgerOf, [digest])).rows[0]!;
  const attempts = (await connection.query<AttemptColumns>(sql.attemptsOf, [digest])).rows;
  const wait = (await connection.query<WaitColumns>(sql.waitOf, [digest])).rows[0];
  const quarantined = await quarantineHistory(connection, sql, digest);
  const started = (await connection.query<StartedColumns>(sql.startedOf, [digest])).rows;
  const log = await readLog(connection, sql, consumer, producer, id);
  await connection.query("commit");
  return {
    ...{ consumer, tenant, producer, id, digest, log },
    at: ledger.at,
    ledger: ledger.taken
      ? {
          processedAt: ledger.processed_at ?? undefined,
          handlerVersion: ledger.handler_version,
          fingerprint: ledger.fingerprint,
          fingerprintMode: ledger.fingerprint_mode,
        }
      : undefined,
    attempts: attempts
      .map((row) => ({
        ...{ at: row.failed_at, code: row.code, error: row.error, handlerVersion: row.handler_version },
      }))
      .reverse(),
    attemptCount: attempts[0]?.attempts ?? 0,
    pending:
      wait === undefined
        ? undefined
        : { ...toPendingRow(wait), lease: leaseOf(wait), parked: parkedOf(wait), before: wait.before },
    quarantined,
    started: started.map((row) => ({ workerId: row.worker_id, at: row.started_at, running: row.running })),
  };
}

/** The log whose record this id names, if the consumer follows it. */
async function readLog(
  connection: DriverConnection,
  sql: PostgresSql,
  consumer: string,
  producer: string,
  id: string,
): Promise<FollowedRecord | undefined> {
  const place = recordPlace(id);
  if (place === undefined) return undefined;
  const values = [consumer, place.incarnation, place.part, producer].map(comparable);
  const { rows } = await connection.query<{ log: string; applied: string | null }>(sql.recordLog, values);
  const [row] = rows;
  if (row === undefined) return undefined;
  const applied = row.applied ?? undefined;
  return { log: row.log, applied, passed: applied !== undefined && place.offset <= BigInt(applied) };
}

const leaseOf = (row: WaitColumns): LaneLease | undefined =>
  row.leased_until === null
    ? undefined
    : {
        lane: row.lane,
        workerId: row.worker_id ?? "",
        until: row.leased_until,
        expired: row.lease_expired === true,
      };

const parkedOf = (row: WaitColumns): ParkedKey | undefined =>
  row.parked_key === null || row.parked_at === null
    ? undefined
    : {
        key: row.parked_key,
        parkedAt: row.parked_at,
        dueAt: row.parked_due_at ?? undefined,
        head:
          row.head_id === null
            ? undefined
            : { tenant: row.head_tenant ?? "", producer: row.head_producer ?? "", id: row.head_id },
        entryId: row.entry_id ?? undefined,
      };

const toPendingRow = (row: PendingColumns): PendingRow => ({
  ...{ consumer: row.consumer, tenant: row.tenant, producer: row.producer, messageId: row.message_id },
  key: row.message_key ?? undefined,
  type: row.message_type ?? undefined,
  state: row.state,
  position: row.place,
  receivedAt: row.received_at,
  dueAt: row.due_at ?? undefined,
  attempts: row.attempts,
  deferrals: row.deferrals,
  code: row.last_code ?? undefined,
  error: row.last_error ?? undefined,
  payloadBytes:
    row.payload_key_id === null ? row.stored_bytes : Math.max(0, row.stored_bytes - sealedOverhead),
});

interface IdentityColumns {
  readonly consumer: string;
  readonly tenant: string;
  readonly producer: string;
  readonly message_id: string;
}

interface PendingColumns extends IdentityColumns {
  readonly message_key: string | null;
  readonly message_type: string | null;
  readonly state: PendingState;
  readonly place: string;
  readonly received_at: Date;
  readonly due_at: Date | null;
  readonly attempts: number;
  readonly deferrals: number;
  readonly last_code: string | null;
  readonly last_error: string | null;
  readonly stored_bytes: number;
  readonly payload_key_id: string | null;
}

interface EntryColumns extends PendingColumns {
  readonly message_time: string | null;
  readonly headers: string;
  readonly payload_hex: string | null;
  readonly fingerprint: string;
  readonly fingerprint_mode: FingerprintMode;
}

interface LedgerColumns {
  readonly at: Date;
  readonly taken: boolean;
  readonly processed_at: Date | null;
  readonly handler_version: string;
  readonly fingerprint: string;
  readonly fingerprint_mode: FingerprintMode;
}

interface AttemptColumns {
  readonly failed_at: Date;
  readonly code: string;
  readonly error: string;
  readonly handler_version: string;
  readonly attempts: number;
}

interface WaitColumns extends PendingColumns {
  readonly lane: number;
  readonly worker_id: string | null;
  readonly leased_until: Date | null;
  readonly lease_expired: boolean | null;
  readonly parked_key: string | null;
  readonly parked_at: Date | null;
  readonly parked_due_at: Date | null;
  readonly head_tenant: string | null;
  readonly head_producer: string | null;
  readonly head_id: string | null;
  readonly entry_id: string | null;
  readonly before: number;
}

interface StartedColumns {
  readonly worker_id: string;
  readonly started_at: Date;
  readonly running: boolean;
}

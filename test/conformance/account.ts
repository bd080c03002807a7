import assert from "node:assert/strict";
import type pg from "pg";
import type { Consumer } from "./consumer-process.ts";
import type { Place, Sent } from "./subject.ts";

/** What the tables, the broker and the consumers say against what was sent. */
export interface Account {
  /** Nothing is missing, pending or left at the broker. */
  readonly settled: boolean;
  /** Ids that are neither applied nor in quarantine; `no id` once for each nameless message that is not in quarantine. */
  readonly lost: readonly string[];
  /** Ids whose effect is there more than once. */
  readonly doubled: readonly string[];
  /** Ids with an effect that nobody sent, or that are in quarantine as well. */
  readonly strange: readonly string[];
  /** Effects that came after a later one of their key, as `key: earlier after later`. */
  readonly disordered: readonly string[];
  /** Ids in quarantine, by code, sorted. */
  readonly quarantined: Readonly<Record<string, readonly string[]>>;
  readonly pending: number;
  /** What the broker still holds. */
  readonly unsettled: number;
  /** Settlements the broker refused. */
  readonly refused: number;
  /** Of the consumers that ended by themselves: deliveries without a settlement, and settlements without a delivery. */
  readonly forgotten: number;
  readonly settledWrongly: number;
  readonly applied: number;
}

export interface Books {
  readonly pool: pg.Pool;
  readonly place: Place;
  readonly sent: ReadonlyMap<string, Sent>;
  /** Publications without an id. */
  readonly nameless: number;
  readonly consumers: readonly Consumer[];
  /** The subject's. */
  readonly namesByPlace: boolean;
}

interface EffectRow {
  readonly id: string;
  readonly key: string;
  readonly sequence: number;
}

/** Takes stock. The broker is asked first: what it does not hold any more must be in the tables read after that. */
export async function account(books: Books): Promise<Account> {
  const { pool, place, sent, nameless, consumers, namesByPlace } = books;
  const unsettled = await place.unsettled();
  const refused = (await place.refused?.()) ?? 0;
  const { rows: effects } = await pool.query<EffectRow>(
    "select message_id as id, key, sequence from effect order by key, applied",
  );
  const nameIs = namesByPlace ? "convert_from(payload, 'UTF8')::json ->> 'id'" : "message_id";
  const { rows: entries } = await pool.query<{ id: string | null; code: string }>(
    `select ${nameIs} as id, code from quarantine order by 1, quarantine.id`,
  );

  const times = new Map<string, number>();
  for (const { id } of effects) times.set(id, (times.get(id) ?? 0) + 1);
  const kept = new Set(entries.flatMap(({ id }) => id ?? []));
  const lost = [...sent.keys()].filter((id) => !times.has(id) && !kept.has(id));
  const namelessKept = entries.filter(({ id }) => id === null).length;
  for (let i = namelessKept; i < nameless; i++) lost.push("no id");
  const quarantined: Record<string, string[]> = {};
  for (const { id, code } of entries) (quarantined[code] ??= []).push(id ?? "no id");
  const pending = await countPending(pool);
  const reports = consumers.flatMap(({ report }) => report ?? []);
  return {
    settled: unsettled === 0 && pending === 0 && lost.length === 0,
    lost,
    doubled: [...times].filter(([, n]) => n > 1).map(([id]) => id),
    strange: [...times.keys()].filter((id) => !sent.has(id) || kept.has(id)),
    disordered: effects.flatMap(({ key, sequence }, i) => {
      const before = effects[i - 1];
      const wrong = before?.key === key && before.sequence >= sequence;
      return wrong ? [`${key}: ${sequence} after ${before.sequence}`] : [];
    }),
    quarantined,
    ...{ pending, unsettled, refused },
    forgotten: reports.reduce(
      (sum, report) => sum + report.deliveries - report.settlements + report.wrong,
      0,
    ),
    settledWrongly: reports.reduce((sum, { wrong }) => sum + wrong, 0),
    applied: effects.length,
  };
}

async function countPending(pool: pg.Pool): Promise<number> {
  const { rows } = await pool.query<{ n: number }>("select count(*)::int as n from pending");
  return rows[0]!.n;
}

export interface Expected {
  /** Ids by code. Default: nothing is in quarantine. */
  readonly quarantined?: Readonly<Record<string, readonly string[]>>;
  /** Whether the order of each key is promised here. Default false. */
  readonly inOrder?: boolean;
  /** Whether settlements may have come too late for the broker. Default false. */
  readonly mayRefuse?: boolean;
}

/** Lost 0, doubled 0, every delivery settled once, and nobody harmed who was not to be. */
export function assertAccount(actual: Account, expected: Expected = {}): void {
  assert.deepEqual(
    {
      ...actual,
      ...(expected.inOrder === true ? {} : { disordered: [] }),
      ...(expected.mayRefuse === true ? { refused: 0 } : {}),
    },
    {
      settled: true,
      ...{ lost: [], doubled: [], strange: [], disordered: [] },
      quarantined: expected.quarantined ?? {},
      ...{ pending: 0, unsettled: 0, refused: 0, forgotten: 0, settledWrongly: 0 },
      applied: actual.applied,
    },
  );
}

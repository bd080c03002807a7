import type pg from "pg";
import type { Messages } from "./messages.ts";

/** What the tables say against what was sent. */
export interface Verdict {
  readonly messages: number;
  readonly applied: number;
  /** Entries in quarantine, by code. */
  readonly quarantined: Readonly<Record<string, number>>;
  /** Messages, or second bodies of one, that are neither applied nor in quarantine. */
  readonly lost: number;
  /** Messages whose effect is there more than once. */
  readonly doubled: number;
  /** Anything else that does not fit, in words. */
  readonly wrong: readonly string[];
}

interface EffectRow {
  readonly message_id: string;
  readonly payloads: string[];
}

/** Compares every message with the tables. */
export async function check(pool: pg.Pool, { sent, nameless }: Messages): Promise<Verdict> {
  const { rows: effects } = await pool.query<EffectRow>(
    "select message_id, array_agg(payload) as payloads from effect group by message_id",
  );
  const { rows: entries } = await pool.query<{ message_id: string | null; code: string; payload: Buffer }>(
    "select message_id, code, payload from quarantine",
  );
  const { rows: ledger } = await pool.query<{ message_id: string; processed: boolean }>(
    "select message_id, processed_at is not null as processed from message",
  );
  const { rows: counted } = await pool.query<{ message_id: string }>(
    "select distinct message_id from attempt",
  );
  const { rows: balances } = await pool.query<{ right: boolean }>(
    "select (select sum(balance) from account) is not distinct from (select sum(amount) from effect) as right",
  );

  const applied = new Map(effects.map((row) => [row.message_id, row.payloads]));
  const processed = new Map(ledger.map((row) => [row.message_id, row.processed]));
  const kept = new Set(entries.map((entry) => entry.payload.toString()));
  const attempted = new Set(counted.map((row) => row.message_id));
  const wrong: string[] = [];
  let lost = 0;
  let doubled = 0;
  for (const [id, { kind, bodies }] of sent) {
    const payloads = applied.get(id) ?? [];
    if (payloads.length > 1) doubled++;
    lost += bodies.filter((body) => !payloads.includes(body) && !kept.has(body)).length;
    if (payloads.length > 0 !== (processed.get(id) === true)) wrong.push(`${id}: ledger and effect differ`);
    if (payloads.some((payload) => !bodies.includes(payload))) wrong.push(`${id}: a payload nobody sent`);
    if (payloads.length > 0 && (kind === "permanent" || kind === "poison"))
      wrong.push(`${id}: ${kind}, but applied`);
    if (kind === "plain" && attempted.has(id))
      wrong.push(`${id}: a failed attempt was counted, but it cannot fail`);
  }
  lost += nameless.filter((body) => !kept.has(body)).length;
  for (const id of applied.keys()) if (!sent.has(id)) wrong.push(`${id}: nobody sent it`);
  if (balances[0]?.right !== true) wrong.push("the balances are not the sum of the effects");

  const quarantined: Record<string, number> = {};
  for (const { code } of entries) quarantined[code] = (quarantined[code] ?? 0) + 1;
  return { messages: sent.size + nameless.length, applied: applied.size, quarantined, lost, doubled, wrong };
}

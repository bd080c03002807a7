import type pg from "pg";
import { receiveMessage } from "../../src/message/create-message.ts";
import type { MessageInput } from "../../src/message/message.ts";
import { until as untilTrue } from "../support/in-time.ts";
import type { Delivery, Settlement, Source } from "../../src/sources/source.ts";

/** A source that hands over what it is given, in order, and ends when all is settled. What is to be retried is handed over again. */
export interface ListSource extends Source {
  /** How deliveries ended, in the order of settling. */
  readonly settlements: readonly (readonly [id: string, Settlement])[];
}

export function listSource(messages: readonly MessageInput[]): ListSource {
  const settlements: (readonly [string, Settlement])[] = [];
  let open = messages.length;
  let stopped = false;
  let deliver: (list: readonly Delivery[]) => void = () => undefined;
  let end: () => void = () => undefined;
  return {
    name: "list",
    settlements,
    async start(intake) {
      deliver = (list) => void intake.deliver(list);
      end = () => intake.end();
      deliver(messages.map((given) => ({ received: receiveMessage(given), redelivered: false })));
      if (open === 0) end();
    },
    async settle(list) {
      for (const [{ received }, settlement] of list) {
        settlements.push([String((received as { id?: unknown }).id), settlement]);
        if (settlement.kind === "retry" && !stopped) {
          setTimeout(() => deliver([{ received, redelivered: true }]), settlement.afterMs);
        } else open--;
      }
      if (open === 0) end();
    },
    async stop() {
      stopped = true;
    },
    async close() {},
  };
}

/** What lies in pending, by id: its state. */
export async function pendingStates(pool: pg.Pool): Promise<Record<string, string>> {
  const { rows } = await pool.query<{ id: string; state: string }>(
    "select message_id as id, state from pending order by position",
  );
  return Object.fromEntries(rows.map(({ id, state }) => [id, state]));
}

/** The ids of effects in the order they were written. */
export async function effectsInOrder(pool: pg.Pool): Promise<string[]> {
  const { rows } = await pool.query<{ id: string }>("select message_id as id from effect order by at, ctid");
  return rows.map(({ id }) => id);
}

/** Resolves when the query's first column is true; rejects after 60 s, or the time given, with what lies in pending and in quarantine. */
export async function until(pool: pg.Pool, query: string, patienceMs?: number): Promise<void> {
  const rowsOf = async (text: string): Promise<unknown> =>
    pool.query(text).then(({ rows }) => rows as unknown, String);
  await untilTrue(
    query,
    async () => {
      const { rows } = await pool.query<{ holds: boolean }>(`select (${query}) as holds`);
      return { holds: rows[0]?.holds === true };
    },
    {
      ms: patienceMs,
      seen: async () => ({
        pending: await rowsOf(
          "select to_jsonb(p) - array['payload', 'headers'] as row from pending p limit 20",
        ),
        lanes: await rowsOf(
          "select to_jsonb(l) as row from pending_lane l where leased_until is not null limit 20",
        ),
        quarantine: await rowsOf("select message_id, code, error from quarantine limit 20"),
      }),
    },
  );
}

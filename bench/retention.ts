import { performance } from "node:perf_hooks";
import Table from "cli-table3";
import type pg from "pg";
import { createInbox, migrate, postgres } from "../src/index.ts";
import { createCleanup } from "../src/retention/retention.ts";
import {
  admin,
  benchPool,
  benchServer,
  freshSchema,
  median,
  paymentMaker,
  quantile,
  seeded,
} from "./setup.ts";

// A ledger in its steady state: a day's identities come in and the oldest day's go, again and again. Claims run at full
// speed, by turns with cleanup beside them and without; then beside one unbounded DELETE of as much. A day is as many
// arrivals, not 24 hours, so that what autovacuum does in a day is one vacuum at its end.

const consumer = "accounting";
const dayMs = 86_400_000;

export interface RetentionBench {
  readonly json: boolean;
  readonly identities: number;
  readonly days: number;
  readonly cycles: number;
  readonly dutyPercent: number;
}

type Beside = "nothing" | "cleanup" | "one DELETE";

interface Phase {
  readonly beside: Beside;
  readonly rate: number;
  readonly latencies: readonly number[];
}

export async function benchRetention(options: RetentionBench): Promise<void> {
  const { identities, days, cycles } = options;
  const aDay = Math.floor(identities / days);
  const server = await benchServer();
  const { schema, drop } = await freshSchema(server.url, 1);
  const pool = benchPool(server.url, schema, 6, true);
  const own = benchPool(server.url, schema, 1, false);
  try {
    await migrate(pool, { schema });
    say(`filling ${identities.toLocaleString("en")} identities of ${days} days`);
    const filledMs = await timed(() => fill(server.url, schema, identities, days));
    await pool.query(
      `insert into source_clock (consumer, source, since, caught_up_at, advanced_at, every_ms)
       values ($1, 'bench', now() - interval '10 years', now(), now(), 100000000)`,
      [consumer],
    );
    const inbox = createInbox({ store: postgres(pool, { schema }), consumer, lanes: 4 });
    const make = paymentMaker(1, seeded(1));
    const store = postgres(own, { schema });
    const settings = { store, skewMs: 0 };
    // As after an installation that has been running: every page has been looked at once.
    const setWindow = (left: number): Promise<unknown> =>
      store.retention.setWindow({ consumer }, Math.round(left * dayMs));
    await setWindow(days + 1);
    say("the first look at all pages");
    const firstLookMs = await timed(() => createCleanup({ ...settings, dutyPercent: 100 }).once());

    const phase = async (beside: Beside, messages: number): Promise<Phase> => {
      const latencies: number[] = [];
      const started = performance.now();
      for (let left = messages; left > 0; left -= 1_000) {
        const given = make(Math.min(left, 1_000)).map(({ id, payload }) => ({
          producer: "bench",
          id,
          payload,
        }));
        const begun = performance.now();
        const outcomes = await inbox.processBatch(given, () => []);
        latencies.push(performance.now() - begun);
        if (outcomes.some(({ outcome }) => outcome !== "applied"))
          throw new Error("a message was not applied");
      }
      return { beside, rate: (messages / (performance.now() - started)) * 1_000, latencies };
    };

    const phases: Phase[] = [];
    const sizes: number[] = [];
    const quarter = Math.floor(aDay / 4);
    let forgottenAfter = 0;
    let beside = 0;
    for (let cycle = 1; cycle <= cycles; cycle++) {
      say(`day ${cycle} of ${cycles}`);
      // The oldest day is due from here on.
      await setWindow(days - cycle);
      await pool.query("update source_clock set caught_up_at = now(), advanced_at = now()");
      const withCleanup = async (messages: number): Promise<void> => {
        const stopping = new AbortController();
        const cleanup = createCleanup({ ...settings, dutyPercent: options.dutyPercent });
        const sweeping = cleanup.once({ signal: stopping.signal });
        phases.push(await phase("cleanup", messages));
        stopping.abort();
        beside += (await sweeping).identities;
      };
      const without = async (messages: number): Promise<void> =>
        void phases.push(await phase("nothing", messages));
      // By turns, and neither of them always first.
      const [outer, inner] = cycle % 2 === 1 ? [without, withCleanup] : [withCleanup, without];
      for (const turn of [outer, inner, inner, outer]) await turn(quarter);
      // What is left of the day, without anybody beside it.
      const rest = await createCleanup({ ...settings, dutyPercent: 100 }).once();
      forgottenAfter += rest.identities;
      await pool.query("vacuum message");
      sizes.push(await sizeOf(pool));
    }

    say("one unbounded DELETE of a day, for comparison");
    const before = days - cycles - 1;
    phases.push(await phase("nothing", quarter));
    const deleting = timed(() =>
      own.query("delete from message where processed_at < now() - $1 * interval '1 day'", [before]),
    );
    phases.push(await phase("one DELETE", 2 * quarter));
    const deletedMs = await deleting;
    const result = {
      identities,
      days,
      cycles,
      filledMs: Math.round(filledMs),
      firstLookMs: Math.round(firstLookMs),
      forgotten: beside + forgottenAfter,
      forgottenBesideClaims: beside,
      rates: Object.fromEntries(kinds.map((kind) => [kind, Math.round(rateOf(phases, kind))])),
      latencies: Object.fromEntries(kinds.map((kind) => [kind, latencyOf(phases, kind)])),
      ratio: rounded(rateOf(phases, "cleanup") / rateOf(phases, "nothing")),
      ratioOfOneDelete: rounded(rateOf(phases, "one DELETE") / rateOf(phases, "nothing")),
      oneDeleteMs: Math.round(deletedMs),
      megabytes: sizes.map((bytes) => Math.round(bytes / 1e6)),
      growth: rounded((sizes.at(-1) ?? 0) / (sizes[Math.min(1, sizes.length - 1)] ?? 1)),
    };
    say("");
    if (options.json) return void process.stdout.write(`${JSON.stringify(result)}\n`);
    print(result);
  } finally {
    await Promise.all([pool.end(), own.end()]);
    await drop();
    await server.stop();
  }
}

const kinds: readonly Beside[] = ["nothing", "cleanup", "one DELETE"];

const rateOf = (phases: readonly Phase[], kind: Beside): number =>
  median(phases.filter(({ beside }) => beside === kind).map(({ rate }) => rate));

function latencyOf(
  phases: readonly Phase[],
  kind: Beside,
): { readonly p50: number; readonly p99: number; readonly max: number } {
  const all = phases.filter(({ beside }) => beside === kind).flatMap(({ latencies }) => [...latencies]);
  return { p50: rounded(median(all)), p99: rounded(quantile(all, 0.99)), max: rounded(Math.max(...all)) };
}

/** Days of rows straight into the table, oldest first as they would lie, and the key built behind them. */
async function fill(url: string, schema: string, identities: number, days: number): Promise<void> {
  await admin(url, [
    `set search_path = ${schema}`,
    "alter table message drop constraint message_pkey",
    `insert into message (digest, processed_at, consumer, tenant, producer, message_id, fingerprint, fingerprint_mode, handler_version)
     select d.digest, now() - interval '1 day' * ${days} * (1 - i / ${identities}.0), '${consumer}', '', 'bench',
            d.digest::text, decode(md5(i::text) || md5(i::text), 'hex'), 'b', '1'
       from generate_series(1, ${identities}) i, lateral (select md5('fill ' || i)::uuid as digest) d`,
    "set maintenance_work_mem = '512MB'",
    "alter table message add constraint message_pkey primary key (digest)",
    "vacuum analyze message",
    "checkpoint",
  ]);
}

const sizeOf = async (pool: pg.Pool): Promise<number> =>
  Number(
    (await pool.query<{ bytes: string }>("select pg_total_relation_size('message') as bytes")).rows[0]?.bytes,
  );

async function timed(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}

function print(result: {
  readonly rates: Readonly<Record<string, number>>;
  readonly latencies: Readonly<
    Record<string, { readonly p50: number; readonly p99: number; readonly max: number }>
  >;
  readonly ratio: number;
  readonly ratioOfOneDelete: number;
  readonly megabytes: readonly number[];
  readonly growth: number;
  readonly forgotten: number;
  readonly forgottenBesideClaims: number;
  readonly oneDeleteMs: number;
}): void {
  const table = new Table({
    head: ["beside claims", "claims/s", "1,000 at once, p50 ms", "p99 ms", "longest ms"],
    style: { head: [] },
  });
  for (const kind of kinds) {
    const { p50, p99, max } = result.latencies[kind] ?? { p50: NaN, p99: NaN, max: NaN };
    table.push([kind, (result.rates[kind] ?? NaN).toLocaleString("en"), p50, p99, max]);
  }
  process.stdout.write(
    `${table.toString()}\n` +
      `cleanup: ${result.ratio} of the rate without (at least 0.9); one DELETE: ${result.ratioOfOneDelete}, for ${result.oneDeleteMs} ms\n` +
      `forgotten: ${result.forgotten.toLocaleString("en")}, of which ${result.forgottenBesideClaims.toLocaleString("en")} beside claims\n` +
      `table and key after each day, MB: ${result.megabytes.join(" ")} (last to second: ${result.growth}, at most 1.05)\n`,
  );
}

const rounded = (value: number): number => Math.round(value * 100) / 100;

const say = (text: string): void => {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`);
};

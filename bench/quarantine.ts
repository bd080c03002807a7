import { performance } from "node:perf_hooks";
import Table from "cli-table3";
import { createQuarantine, postgres, migrate } from "../src/index.ts";
import { errorShape } from "../src/store/error-shape.ts";
import { admin, benchPool, benchServer, freshSchema, median } from "./setup.ts";

// What operators wait for with many entries in quarantine: lists, groups, counts, and a decision on all that fit.

const consumer = "accounting";
const decider = { by: "bench", why: "measured" };
const maxAnswerMs = 1_000;

interface Answer {
  readonly name: string;
  readonly ms: number;
  readonly found: number;
}

/** Measures with so many entries: 40 kinds of error, 20,000 keys, bodies of 400 bytes. */
export async function benchQuarantine(options: {
  readonly json: boolean;
  readonly entries: number;
}): Promise<void> {
  const server = await benchServer();
  const { schema, drop } = await freshSchema(server.url, 1);
  const pool = benchPool(server.url, schema, 4, true);
  try {
    await migrate(pool, { schema });
    await fill(server.url, schema, options.entries);
    const store = postgres(pool, { schema });
    await store.pending.openLanes(consumer);
    const quarantine = createQuarantine({ store });
    const answers: Answer[] = [];
    const measure = async (name: string, ask: () => Promise<readonly unknown[] | number>): Promise<void> => {
      const times: number[] = [];
      let found = 0;
      for (let i = 0; i < 5; i++) {
        const started = performance.now();
        const answer = await ask();
        times.push(performance.now() - started);
        found = typeof answer === "number" ? answer : answer.length;
      }
      answers.push({ name, ms: median(times), found });
    };
    await measure("list", () => quarantine.list());
    await measure("list of a consumer", () => quarantine.list({ consumer, limit: 1_000 }));
    await measure("list by code", () => quarantine.list({ consumer, code: "attempts-exhausted" }));
    await measure("list by key", () => quarantine.list({ consumer, key: "key-17" }));
    await measure("list by message id", () => quarantine.list({ messageId: "m-4711" }));
    await measure("list by text that is rare", () => quarantine.list({ text: "account 99999 " }));
    await measure("last page", async () => quarantine.list({ after: String(50) }));
    await measure("groups", () => quarantine.groups());
    await measure("groups of a code", () => quarantine.groups({ consumer, code: "handler-rejected" }));
    await measure("count", () => quarantine.count({ consumer }));
    await measure("count by text", () => quarantine.count({ text: "gateway" }));
    const [largest] = await quarantine.groups();
    await measure("count of a group", () => quarantine.count({ consumer, group: largest!.group }));

    const retried = await quarantine.count({ consumer });
    const started = performance.now();
    const decision = await quarantine.retryMany({ consumer }, { ...decider, expected: retried });
    answers.push({
      name: "retry of a consumer's: answered",
      ms: performance.now() - started,
      found: decision.matched,
    });
    const begun = performance.now();
    const done = await quarantine.carryOn(decision.id);
    const movedMs = performance.now() - begun;
    if (done.decided !== retried) throw new Error(`${done.decided} of ${retried} entries were given back`);

    const slow = answers.filter(({ ms }) => ms >= maxAnswerMs);
    if (options.json) {
      process.stdout.write(
        `${JSON.stringify({ entries: options.entries, answers, moved: { entries: retried, ms: movedMs } })}\n`,
      );
    } else {
      const table = new Table({
        head: [`${options.entries.toLocaleString("en")} entries`, "ms", "found"],
        style: { head: [] },
      });
      for (const { name, ms, found } of answers) table.push([name, Math.round(ms * 10) / 10, found]);
      const rate = Math.round((retried / movedMs) * 1_000).toLocaleString("en");
      table.push([`given back, ${rate}/s`, Math.round(movedMs), retried]);
      process.stdout.write(`${table.toString()}\n`);
    }
    if (slow.length > 0) {
      process.stderr.write(`Slower than ${maxAnswerMs} ms: ${slow.map(({ name }) => name).join(", ")}.\n`);
      process.exitCode = 3;
    }
  } finally {
    await pool.end();
    await drop();
    await server.stop();
  }
}

/** Entries as a run would leave them: identities in the ledger, keys parked behind the first entry of each. */
async function fill(url: string, schema: string, entries: number): Promise<void> {
  const kinds = Array.from({ length: 40 }, (_, i) => {
    const code = i % 4 === 0 ? "handler-rejected" : "attempts-exhausted";
    const what = [
      "gateway answered",
      "no such account in region",
      "limit exceeded for plan",
      "upstream timeout after",
    ][i % 4];
    const name = `step ${String.fromCharCode(97 + (i % 26))}${i >= 26 ? "x" : ""}`;
    return { code, text: `${name}: ${what}`, ...errorShape(code, `${name}: ${what} account 1 at 2`) };
  });
  const list = (values: readonly string[]): string =>
    `array[${values.map((value) => `'${value}'`).join(",")}]`;
  await admin(url, [
    `with kind as (
       select * from unnest(${list(kinds.map(({ code }) => code))}, ${list(kinds.map(({ text }) => text))},
                            ${list(kinds.map(({ group }) => group))}, ${list(kinds.map(({ shape }) => shape))}) with ordinality
                     as k (code, error, grp, shape, n)
     ), entry as materialized (
       select i, 'm-' || i as id, 'key-' || i % 20000 as key, gen_random_uuid() as digest, k.*
         from generate_series(1, ${entries}) i join kind k on k.n = 1 + i % 40
     ), ledger as (
       insert into ${schema}.message
         (digest, consumer, tenant, producer, message_id, fingerprint, fingerprint_mode, handler_version)
       select digest, '${consumer}', '', 'payments', id, sha256(id::bytea), 'b', '1' from entry
     ), parked as (
       insert into ${schema}.parked_key (consumer, message_key, lane, due_at, digest)
       select distinct on (key) '${consumer}', key, ${schema}.lane_of(key, digest), 'infinity', digest from entry order by key, i
     )
     insert into ${schema}.quarantine
       (consumer, digest, tenant, producer, message_id, message_key, message_type, headers, payload, fingerprint,
        fingerprint_mode, code, error, attempts, first_failed_at, last_failed_at, handler_version, blocking, error_group,
        error_shape, payload_bytes)
     select '${consumer}', digest, '', 'payments', id, key, 'paid', '{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}',
            convert_to(repeat('x', 400), 'utf8'), sha256(id::bytea), 'b', code, error || ' account ' || i || ' at ' || now(), 5,
            now() - interval '1 hour', now() - i * interval '1 millisecond', '1', true, grp, shape, 400
       from entry order by i`,
    `vacuum analyze ${schema}.quarantine`,
    `vacuum analyze ${schema}.message`,
  ]);
}

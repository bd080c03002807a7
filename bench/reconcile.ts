import { spawn } from "node:child_process";
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { finished } from "node:stream/promises";
import Table from "cli-table3";
import pg from "pg";
import { bundle } from "../scripts/bundle.ts";
import { migrate } from "../src/index.ts";
import { admin, benchPool, benchServer, freshSchema, median } from "./setup.ts";
import type { Comparison } from "./reconcile-once.ts";

/** How many messages of the list differ: lost, changed, and as many applied ones that are not in it. */
const cases = [
  { name: "equal", differing: 0 },
  { name: "1,000 differ", differing: 1_000 },
  { name: "all differ", differing: Number.POSITIVE_INFINITY },
] as const;

/** A list of messages against a ledger of as many: each comparison in a process of its own, whose memory is measured. */
export async function benchReconcile(options: {
  readonly json: boolean;
  readonly messages: number;
  /** The name of one case; all, and the index's cost, by default. */
  readonly only: string | undefined;
}): Promise<void> {
  const { json, messages, only } = options;
  const server = await benchServer();
  const directory = await mkdtemp(join(tmpdir(), "inbox-reconcile-"));
  try {
    const { schema, drop } = await freshSchema(server.url, 1);
    const pool = benchPool(server.url, schema, 2, false);
    await migrate(pool, { schema });
    await fill(server.url, schema, messages);
    const results: object[] = [];
    for (const { name, differing } of cases) {
      if (only !== undefined && only !== name) continue;
      const changed = Math.min(differing, messages);
      const file = join(directory, "sent.ndjson");
      await writeList(file, messages, changed);
      for (const source of ["file", "query"] as const) {
        const once = await compareOnce({ url: server.url, schema, file, source, messages, changed });
        results.push({ name, source, messages, ...once });
      }
    }
    const index = only === undefined ? await indexCost(server.url, messages) : undefined;
    await pool.end();
    await drop();
    if (json) return void process.stdout.write(`${JSON.stringify({ results, index })}\n`);
    const table = new Table({
      head: ["case", "list", "seconds", "CPU s", "MB resident", "missing", "extra"],
      style: { head: [] },
    });
    for (const row of results as (Comparison & { name: string; source: string })[]) {
      table.push([
        row.name,
        row.source,
        row.seconds.toFixed(1),
        row.cpuSeconds.toFixed(1),
        Math.round(row.residentMb),
        row.missing,
        row.extra,
      ]);
    }
    process.stdout.write(
      `${messages.toLocaleString("en")} against as many; asked: < 30 s, < 200 MB\n${table.toString()}\n` +
        (index === undefined
          ? ""
          : `claims with a brin index on processed_at, against without: ${index.toFixed(3)}\n`),
    );
  } finally {
    await rm(directory, { recursive: true });
    await server.stop();
  }
}

/** The id of a message: random to look at, and the same in SQL. */
const idSql = "md5(n::text)::uuid::text";

async function fill(url: string, schema: string, messages: number): Promise<void> {
  const lengthAnd = (text: string): string => `octet_length(${text}) || ':' || ${text}`;
  await admin(url, [
    `insert into ${schema}.message
     select substr(encode(sha256(convert_to('10:accounting0:8:payments' || ${lengthAnd("id")}, 'utf8')), 'hex'), 1, 32)::uuid,
            now() - interval '1 hour', 'accounting', '', 'payments', id, sha256(convert_to(id, 'utf8')), 'b', ''
       from (select ${idSql} as id from generate_series(1, ${messages}) n) ids`,
    `create table ${schema}.sent_message as
     select n, ${idSql} as id, ${idSql} as body, now() - interval '1 hour' as sent_at from generate_series(1, ${messages}) n`,
    `vacuum analyze ${schema}.message`,
    `vacuum analyze ${schema}.sent_message`,
  ]);
}

/** The first messages of the list have ids that were never applied; so theirs in the ledger are not in the list. */
async function writeList(path: string, messages: number, changed: number): Promise<void> {
  const { createHash } = await import("node:crypto");
  const stream = createWriteStream(path);
  const time = new Date(Date.now() - 3_600_000).toISOString();
  for (let n = 1; n <= messages; n++) {
    const hex = createHash("md5").update(String(n)).digest("hex");
    const id = hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
    const line = JSON.stringify({ id: n <= changed ? `lost-${id}` : id, payload: id, time });
    if (!stream.write(`${line}\n`)) await once(stream, "drain");
  }
  stream.end();
  await finished(stream);
}

async function compareOnce(given: object): Promise<Comparison> {
  const child = spawn(
    process.execPath,
    [await bundle(resolve("bench", "reconcile-once.ts")), JSON.stringify(given)],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  let text = "";
  child.stdout.setEncoding("utf8").on("data", (part: string) => (text += part));
  const [code] = (await once(child, "close")) as [number | null];
  if (code !== 0) throw new Error(`a comparison ended with ${code}`);
  return JSON.parse(text) as Comparison;
}

/** The rate of inserts with a brin index on processed_at, over the rate without, by turns. */
async function indexCost(url: string, messages: number): Promise<number> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const rates: number[] = [];
  try {
    const seconds = async (index: boolean): Promise<number> => {
      const { schema, drop } = await freshSchema(url, 1);
      const pool = benchPool(url, schema, 1, false);
      await migrate(pool, { schema });
      await pool.end();
      if (index) await client.query(`create index on ${schema}.message using brin (processed_at)`);
      const start = performance.now();
      // Batches of 500 through the claim itself.
      await client.query(`do $$ declare i int; begin
        for i in 1 .. ${Math.ceil(messages / 10 / 500)} loop
          perform ${schema}.claim('accounting', '', 1000, array_agg(gen_random_uuid()), array_agg(''::text), array_agg('payments'::text),
                                  array_agg(n::text), array_agg(''::bytea), array_agg('b'::text)) from generate_series(1, 500) n;
        end loop; end $$`);
      const took = performance.now() - start;
      await drop();
      return took;
    };
    for (let round = 0; round < 5; round++) {
      const [without, withIndex] = [await seconds(false), await seconds(true)];
      rates.push(without / withIndex);
    }
  } finally {
    await client.end();
  }
  return median(rates);
}

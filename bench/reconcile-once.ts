import pg from "pg";
import { reconcile } from "../src/reconcile/reconcile.ts";
import { sentFile } from "../src/reconcile/sent-file.ts";
import { sentQuery } from "../src/reconcile/sent-query.ts";

export interface Comparison {
  readonly seconds: number;
  /** Of this process, without the database. */
  readonly cpuSeconds: number;
  readonly residentMb: number;
  readonly missing: number;
  readonly extra: number;
}

interface Given {
  readonly url: string;
  readonly schema: string;
  readonly file: string;
  readonly source: "file" | "query";
  readonly messages: number;
  readonly changed: number;
}

const { url, schema, file, source, messages, changed } = JSON.parse(process.argv[2] ?? "{}") as Given;
const pool = new pg.Pool({ connectionString: url, max: 2 });
const sent =
  source === "file"
    ? sentFile(file, { producer: "payments" })
    : sentQuery(
        pool,
        `select case when n <= ${changed} then 'lost-' else '' end || id as id, body as payload, sent_at as time
           from ${schema}.sent_message where sent_at >= $1 and sent_at < $2`,
        { producer: "payments" },
      );
const start = performance.now();
const report = await reconcile(pool, { consumer: "accounting", schema, sent, onDifference: () => undefined });
const seconds = (performance.now() - start) / 1_000;
await pool.end();
const { missing, extra } = report.differences;
if (report.sent !== messages || missing !== changed || extra !== changed) {
  throw new Error(`it found ${JSON.stringify(report)}`);
}
const { maxRSS, userCPUTime, systemCPUTime } = process.resourceUsage();
const residentMb = maxRSS / 1_024;
const cpuSeconds = (userCPUTime + systemCPUTime) / 1e6;
process.stdout.write(
  JSON.stringify({ seconds, cpuSeconds, residentMb, missing, extra } satisfies Comparison),
);

import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { migrate } from "../../src/store/postgres/migrate.ts";
import { postgres } from "../../src/store/postgres/postgres.ts";
import { sampleBytes } from "../message/samples.ts";
import { testDatabase } from "../support/postgres.ts";
import type { Scope } from "../support/cleanup.ts";
import { ownDirectory } from "../sources/ndjson/harness.ts";
import { handlerPath, summaryIn } from "./run-case.ts";
import { runInbox, type RunResult } from "./run-inbox.ts";

async function identityCase(t: Scope) {
  const cwd = ownDirectory(t);
  const { url, schema, pool } = await testDatabase(t);
  const env = { DATABASE_URL: url, PGOPTIONS: `-c search_path=${schema}` };
  const run = (...args: readonly string[]): Promise<RunResult> =>
    runInbox(["run", handlerPath("record"), "--schema", schema, "--json", ...args], { cwd, env });
  return { cwd, pool, schema, run };
}

test("inbox run applies every interchange of an EDIFACT file once, and finds the file done", async (t) => {
  const { cwd, pool, run } = await identityCase(t);
  const file = join(cwd, "orders.edi");
  writeFileSync(file, sampleBytes("13-edifact-multi-interchange.edi"));
  const first = await run("--source", file, "--identity", "edifact");
  assert.equal(first.code, 3, first.stderr);
  const { applied, conflicts, rejected } = summaryIn(first.stdout);
  assert.deepEqual({ applied, conflicts, rejected }, { applied: 3, conflicts: 1, rejected: 1 });
  assert.match(first.stderr, /1 ignored: an interchange with the test indicator\./);
  assert.deepEqual(Object.values((JSON.parse(first.stdout) as { ignored: object }).ignored), [1]);
  const again = await run("--source", file, "--identity", "edifact");
  assert.deepEqual([again.code, summaryIn(again.stdout).deliveries], [0, 0]);
  assert.match(again.stderr, /1 of 1 files were done before/);
  const whole = await run("--source", file, "--identity", "edifact", "--no-resume");
  assert.equal(summaryIn(whole.stdout).duplicates, 3);
  const { rows } = await pool.query("select count(*)::int as n from effect");
  assert.deepEqual(rows, [{ n: 3 }]);
});

test("inbox run takes a directory of AS4 messages, and SQS lines with the id in the body", async (t) => {
  const { cwd, run } = await identityCase(t);
  const inbound = join(cwd, "inbound");
  mkdirSync(inbound);
  writeFileSync(join(inbound, "1.xml"), sampleBytes("15-as4-usermessage.xml"));
  writeFileSync(
    join(inbound, "2.xml"),
    sampleBytes("15-as4-usermessage.xml").toString().replace("08:15:30.000Z", "09:15:30.000Z"),
  );
  writeFileSync(join(inbound, "3.xml"), sampleBytes("17-as4-xxe-attempt.xml"));
  const as4 = await run("--source", inbound, "--identity", "as4");
  assert.equal(as4.code, 3, as4.stderr);
  const { applied, duplicates, rejected } = summaryIn(as4.stdout);
  assert.deepEqual({ applied, duplicates, rejected }, { applied: 1, duplicates: 1, rejected: 1 });

  const queue = join(cwd, "queue.ndjson");
  const message = (n: number): string => JSON.stringify({ MessageId: `m-${n}`, Body: '{"eventId":"e"}' });
  writeFileSync(queue, `${message(1)}\n${message(2)}\n`);
  const sqs = await run(
    "--source",
    queue,
    "--identity",
    "sqs",
    "--id-path",
    "/eventId",
    "--producer",
    "shop",
  );
  assert.equal(sqs.code, 0, sqs.stderr);
  assert.deepEqual([summaryIn(sqs.stdout).applied, summaryIn(sqs.stdout).duplicates], [1, 1]);
});

test("inbox run --id-time: an id from before what is forgotten is late, one without a time is not", async (t) => {
  const { cwd, pool, run, schema } = await identityCase(t);
  const file = join(cwd, "ids.ndjson");
  const [ulidOf2016, word] = ["01ARYZ6S41TSV4RRFFQ69G5FAV", "no-time"];
  writeFileSync(file, `${JSON.stringify({ id: ulidOf2016 })}\n${JSON.stringify({ id: word })}\n`);
  await migrate(pool, { schema });
  const { retention } = postgres(pool, { schema });
  await retention.setWindow({ consumer: "books" }, 1);
  await retention.advance({ consumer: "books" }, { skewMs: 0, notAfter: new Date() });
  const told = await run(
    ...["--source", file, "--id-path", "/id", "--producer", "shop"],
    ...["--consumer", "books", "--id-time", "ulid"],
  );
  assert.equal(told.code, 3, told.stderr);
  assert.deepEqual([summaryIn(told.stdout).late, summaryIn(told.stdout).applied], [1, 1]);
  const { rows } = await pool.query("select message_id as id, code from quarantine");
  assert.deepEqual(rows, [{ id: ulidOf2016, code: "late" }]);
});

test("inbox run refuses flags that do not fit together, and names what fits", async (t) => {
  const { cwd, run } = await identityCase(t);
  const wrong: readonly (readonly [readonly string[], RegExp])[] = [
    [
      ["--source", "x", "--id-time", "uuidv4"],
      /It must be uuidv7, ulid, ksuid, objectid, or snowflake:EPOCH/,
    ],
    [["--source", "x", "--identity", "nothing"], /Allowed choices are as4, cloudevents/],
    [["--source", "x", "--identity", "json"], /--identity json needs --id-path/],
    [["--source", "x", "--identity", "header"], /--identity header needs --id-header/],
    [["--source", "-", "--identity", "edifact"], /reads whole files/],
    [["--source", cwd], /is a directory: --identity must say/],
    [["--source", "x", "--id-rule", "uuid"], /--id-rule needs --id-header/],
    [["--source", "x", "--identity", "sqs", "--type-path", "/a"], /--type-path goes with --id-path alone/],
  ];
  for (const [args, expected] of wrong) {
    const { code, stderr } = await run(...args);
    assert.equal(code, 2, stderr);
    assert.match(stderr, expected);
  }
});

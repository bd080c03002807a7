import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import pg from "pg";
import { onTestEnd } from "../../support/cleanup.ts";
import { testDatabase } from "../../support/postgres.ts";
import { prototypeSql } from "./prototype.ts";

/** Claims in all. More: INBOX_TEST_ROUNDS=10000. */
const rounds = Number(process.env["INBOX_TEST_ROUNDS"] ?? 2_000);
const workers = 6;
const isolations = ["read committed", "read committed", "repeatable read", "serializable"];
/** What a claim may end with besides an answer: it is tried again. */
const retried = new Set(["40001", "40P01", "55P03", "57P01", "08006"]);

test("rotations, forgetting, copies, rollbacks and killed sessions at random: no message is applied twice", async (t) => {
  const { pool, url, schema } = await testDatabase(t, { max: 4 });
  await pool.query(prototypeSql());
  await pool.query("create table effect (digest uuid not null)");
  const connect = async (): Promise<pg.Client> => {
    const client = new pg.Client({
      connectionString: url,
      options: `-c search_path=${schema} -c lock_timeout=5s`,
    });
    client.on("error", () => undefined);
    await client.connect();
    return client;
  };
  const clients = new Set<pg.Client>();
  onTestEnd(t, async () => void (await Promise.all([...clients].map((client) => client.end()))));

  const now = async (): Promise<Date> =>
    (await pool.query<{ now: Date }>("select clock_timestamp() as now")).rows[0]!.now;
  let messages: { readonly id: string; readonly sent: Date }[] = [];
  const renew = async (): Promise<void> => {
    const sent = await now();
    messages = [...messages.slice(-40), ...Array.from({ length: 10 }, () => ({ id: randomUUID(), sent }))];
  };
  await renew();
  const pick = <T>(list: readonly T[]): T => list[Math.floor(Math.random() * list.length)]!;
  const verdicts: Record<string, number> = {};
  const count = (what: string): void => void (verdicts[what] = (verdicts[what] ?? 0) + 1);
  let left = rounds;

  /** One claim of some messages and their effects, in a transaction that commits, rolls back, or whose session is killed. */
  async function round(client: pg.Client): Promise<void> {
    const batch = [...new Set([pick(messages), pick(messages), pick(messages)])];
    await client.query(`begin isolation level ${pick(isolations)}`);
    // Some have a snapshot already, as in a user's own transaction.
    if (Math.random() < 0.5) await client.query("select count(*) from generation");
    if (Math.random() < 0.3) await new Promise((resolve) => setImmediate(resolve));
    const { rows } = await client.query<{ digest: string; verdict: string }>(
      "select * from claim($1::uuid[], $2::timestamptz[])",
      [batch.map(({ id }) => id), batch.map(({ sent }) => sent)],
    );
    const fresh = rows.filter(({ verdict }) => verdict === "new").map(({ digest }) => digest);
    await client.query("insert into effect select unnest($1::uuid[])", [fresh]);
    const fate = Math.random();
    if (fate < 0.1) return void (await client.query("rollback"));
    if (fate < 0.13) await client.query("select pg_terminate_backend(pg_backend_pid())");
    await client.query("commit");
    for (const { verdict } of rows) count(verdict);
  }

  async function work(): Promise<void> {
    let client = await connect();
    clients.add(client);
    while (left-- > 0) {
      if (left % 10 === 0) await renew();
      try {
        await round(client);
      } catch (error) {
        const code = (error as { code?: string }).code ?? "";
        if (!retried.has(code) && !/terminat/.test(String(error))) throw error;
        count(code === "40001" ? "refused" : "failed");
        const alive = await client.query("rollback").then(
          () => true,
          () => false,
        );
        if (alive) continue;
        clients.delete(client);
        client = await connect();
        clients.add(client);
      }
    }
  }

  /** Opens and forgets, as soon as anything may be forgotten at all, with some claims in between. */
  async function rotate(): Promise<void> {
    const statements = ["select open_generation() as done", "select forget_generation('0s', '0s') as done"];
    for (let turn = 0; left > 0; turn++) {
      const statement = statements[turn % 2]!;
      const { rows } = await pool.query<{ done: boolean }>(statement);
      if (rows[0]!.done) count(turn % 2 === 0 ? "opened" : "forgotten");
      const until = left - 15 * Math.random();
      while (left > until && left > 0) await new Promise((resolve) => setImmediate(resolve));
    }
  }

  await Promise.all([rotate(), rotate(), ...Array.from({ length: workers }, work)]);
  const { rows: doubled } = await pool.query(
    "select digest, count(*) from effect group by digest having count(*) > 1",
  );
  assert.deepEqual(doubled, []);
  for (const what of ["new", "duplicate", "late", "refused", "failed", "opened", "forgotten"]) {
    assert.ok((verdicts[what] ?? 0) > 0, `${what} was never seen: ${JSON.stringify(verdicts)}`);
  }
  t.diagnostic(JSON.stringify(verdicts));
});

test("the random test finds a ledger without guard: it would show a doubled message", async (t) => {
  const { pool } = await testDatabase(t);
  await pool.query(prototypeSql({ guarded: false }));
  await pool.query("create table effect (digest uuid not null)");
  const [id, client, copy] = [randomUUID(), await pool.connect(), await pool.connect()];
  try {
    // The plan of the random test, by hand: a claim in flight, a generation opened beside it, a copy.
    await client.query("begin");
    await client.query(
      "insert into effect select digest from claim(array[$1::uuid], array[now()]) where verdict = 'new'",
      [id],
    );
    await pool.query("select open_generation()");
    await copy.query(
      "insert into effect select digest from claim(array[$1::uuid], array[now()]) where verdict = 'new'",
      [id],
    );
    await client.query("commit");
  } finally {
    client.release();
    copy.release();
  }
  assert.equal((await pool.query("select from effect")).rowCount, 2);
});

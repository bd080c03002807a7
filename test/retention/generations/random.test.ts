import assert from "node:assert/strict";
import { test } from "node:test";
import type { IsolationLevel } from "../../../src/store/store.ts";
import type { StoredMessage } from "../../../src/store/pending.ts";
import { name, stored, testStore, type TestStore } from "../../store/support.ts";

/** Claims in all. More: INBOX_TEST_ROUNDS=10000 npx tsx --test test/retention/generations/random.test.ts */
const rounds = Number(process.env["INBOX_TEST_ROUNDS"] ?? 500);
const workers = 6;
// Rows go in batches when they are older than the first, generations when they are older than the second.
const windowMs = 15;
const generationMs = 40;
const isolations: readonly IsolationLevel[] = [
  "read committed",
  "read committed",
  "repeatable read",
  "serializable",
];
/** What a claim may end with besides an answer: it is tried again. */
const retried = /40001|40P01|55P03|57P01|08006|connection-lost|commit-unknown|commit-refused/;

const pick = <T>(list: readonly T[]): T => list[Math.floor(Math.random() * list.length)]!;
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const codeOf = (error: unknown): string => String((error as { code?: unknown }).code ?? error);

test("rotations, batches that forget, copies, stored messages, rollbacks and killed sessions at random: nothing is applied twice", async (t) => {
  const db = await testStore(t);
  const { store, pool } = db;
  await pool.query("create table effect (message_id text not null)");
  await store.retention.setWindow({ consumer: name.consumer }, windowMs);
  const counts: Record<string, number> = {};
  const count = (what: string): void => void (counts[what] = (counts[what] ?? 0) + 1);
  let left = rounds;
  let made = 0;
  let messages: readonly StoredMessage[] = [];
  const renew = async (): Promise<void> => {
    const { rows } = await pool.query<{ ms: string }>(
      "select floor(extract(epoch from clock_timestamp()) * 1000)::text as ms",
    );
    const sentAt = Number(rows[0]!.ms);
    const fresh = Array.from({ length: 10 }, () => stored(`m${made++}`, { sentAt }));
    messages = [...messages.slice(-40), ...fresh];
  };
  await renew();

  /** Claims some messages with their effects, and commits, rolls back, or loses its session. */
  async function claimSome(): Promise<void> {
    const batch = [...new Set([pick(messages), pick(messages), pick(messages)])].slice(
      Math.random() < 0.4 ? -1 : -3,
    );
    batch.sort((a, b) => (a.digest < b.digest ? -1 : 1));
    const tx = await db.begin({ isolation: pick(isolations), claimLockTimeoutMs: 2_000 });
    try {
      // Some have a snapshot already, as in a user's own transaction.
      if (Math.random() < 0.5) await tx.query({ text: "select count(*) from retention" });
      if (Math.random() < 0.3) await turn();
      const { notNew } = await tx.claim(batch);
      const known = new Map(notNew.map((one) => [one.digest, one]));
      const fresh = batch.filter(({ digest }) => !known.has(digest)).map(({ id }) => id);
      await tx.query({ text: "insert into effect select unnest($1::text[])", values: [fresh] });
      const fate = Math.random();
      if (fate < 0.1) return await tx.rollback();
      if (fate < 0.13) await tx.query({ text: "select pg_terminate_backend(pg_backend_pid())" });
      await tx.commit();
      for (const { digest } of batch) {
        const met = known.get(digest);
        count(
          met === undefined
            ? "new"
            : met.late
              ? "late"
              : (met.seen?.processed ?? true)
                ? "duplicate"
                : "stored",
        );
      }
    } finally {
      await tx.rollback();
    }
  }

  /** Handles what is stored: hold, effect, finish. */
  async function handleStored(): Promise<void> {
    const { messages: taken } = await db.take({ leaseMs: 5_000, maxLanes: 8, maxMessages: 10 });
    if (taken.length === 0) return;
    const tx = await db.begin({ isolation: pick(isolations), claimLockTimeoutMs: 2_000 });
    try {
      const gone = await tx.hold(taken);
      const held = taken.filter(({ digest }) => !gone.has(digest));
      await turn();
      await tx.query({
        text: "insert into effect select unnest($1::text[])",
        values: [held.map(({ id }) => id)],
      });
      await tx.finish(held);
      await tx.commit();
      if (held.length > 0) count("handled");
    } finally {
      await tx.rollback();
      await store.pending.take(name.consumer, {
        ...{ workerId: "00000000-0000-0000-0000-000000000000", leaseMs: 1_000, maxLanes: 0, maxMessages: 0 },
        ...{ maxBytes: 1, done: [...new Map(taken.map(({ lease }) => [lease.lane, lease])).values()] },
      });
    }
  }

  async function work(): Promise<void> {
    while (left-- > 0) {
      if (left % 10 === 0) await renew();
      try {
        const kind = Math.random();
        if (kind < 0.75) await claimSome();
        else if (kind < 0.85) await store.pending.accept(name, 2_000, [pick(messages)]);
        else await handleStored();
      } catch (error) {
        if (!retried.test(codeOf(error))) throw error;
        count(codeOf(error) === "40001" ? "refused" : "failed");
      }
    }
  }

  async function rotate(): Promise<void> {
    while (left > 0) {
      const rotation = await store.retention.rotate({
        windowMs: generationMs,
        skewMs: 0,
        lockTimeoutMs: 300,
      });
      count(rotation);
      if (Math.random() < 0.7 && (await store.retention.noteReach({ lockTimeoutMs: 300 }))) count("noted");
      const until = left - 30 * Math.random();
      while (left > until && left > 0) await turn();
    }
  }

  async function forget(): Promise<void> {
    while (left > 0) {
      await store.retention.advance({ consumer: name.consumer }, { skewMs: 0 });
      await forgetDue(db).then(
        (gone) => count(gone > 0 ? "forgotten" : "nothing due"),
        () => count("gave way"),
      );
      const until = left - 3 * Math.random();
      while (left > until && left > 0) await turn();
    }
  }

  await Promise.all([rotate(), rotate(), forget(), ...Array.from({ length: workers }, work)]);
  const doubled = await db.rows(
    "select message_id, count(*) from effect group by message_id having count(*) > 1",
  );
  t.diagnostic(JSON.stringify(counts));
  assert.deepEqual(doubled, []);
  for (const what of ["new", "duplicate", "late", "handled", "refused", "rotated", "noted"]) {
    assert.ok((counts[what] ?? 0) > 0, `${what} was never seen: ${JSON.stringify(counts)}`);
  }
});

/** As a batch forgets: behind the mark, what the horizon's row says. */
async function forgetDue({ pool }: TestStore): Promise<number> {
  const client = await pool.connect();
  try {
    await client.query("begin isolation level read committed");
    await client.query("set local lock_timeout = '100ms'");
    await client.query("select publish_horizon()");
    const { rowCount } = await client.query(
      `delete from message m using retention r
        where r.consumer = m.consumer and r.producer = '' and m.processed_at < r.forgotten_to`,
    );
    await client.query("commit");
    return rowCount ?? 0;
  } catch (error) {
    await client.query("rollback");
    throw error;
  } finally {
    client.release();
  }
}

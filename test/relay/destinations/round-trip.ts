import assert from "node:assert/strict";
import { createInbox } from "../../../src/inbox/create-inbox.ts";
import { again, isSent, type Answer } from "../../../src/relay/answer.ts";
import type { Destination } from "../../../src/relay/destination.ts";
import type { Effect } from "../../../src/relay/effect.ts";
import type { Source } from "../../../src/sources/source.ts";
import { migrate } from "../../../src/store/postgres/migrate.ts";
import { postgres } from "../../../src/store/postgres/postgres.ts";
import { onTestEnd, type Scope } from "../../support/cleanup.ts";
import { testDatabase } from "../../support/postgres.ts";
import { testOutbox } from "../../outbox/support.ts";
import { effect, startRelay, until } from "../support.ts";

const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/** What the handler saw of one message, with what may differ between transports left out. */
export interface Received {
  readonly id: string;
  readonly producer: string;
  readonly key: string | null;
  readonly type: string | null;
  readonly body: string | null;
  readonly traceparent: string | null;
}

export interface RoundTrip {
  readonly destination: Destination;
  readonly source: Source;
  /** How many of the two copies that are sent of each effect come out of the broker again. */
  readonly copies: 1 | 2;
  /** Without keys the order of arrival says nothing. */
  readonly keyed: boolean;
}

export const effectCount = 24;

/**
 * Asks for effects of three keys, has each of them sent twice, as after an answer that was lost, and runs an inbox with
 * default options on the other side. Asserts that each was applied once, those of a key in their order, and that no copy
 * is a conflict. Resolves with what the handler saw, in its order.
 */
export async function roundTrip(
  t: Scope,
  { destination, source, copies, keyed }: RoundTrip,
): Promise<readonly Received[]> {
  const place = await testOutbox(t);
  const { pool, schema } = await testDatabase(t);
  await migrate(pool, { schema });
  await pool.query(
    `create table receipt (n bigint generated always as identity, id text unique, producer text, key text, type text,
       body text, traceparent text)`,
  );
  const inbox = createInbox({ store: postgres(pool, { schema }), consumer: "ledger" });
  const run = inbox.run(source, async (message, { tx }) => {
    const { id, producer, key, type, headers } = message;
    await tx.query(
      "insert into receipt (id, producer, key, type, body, traceparent) values ($1, $2, $3, $4, $5, $6)",
      [...[id, producer, key, type, message.text()], headers["traceparent"] ?? headers["ce-traceparent"]],
    );
  });
  onTestEnd(t, async () => void (await run.stop()));
  await startRelay(t, place, { there: twice(destination) });
  await place.commit((client) =>
    place.outbox.sendAll(
      client,
      Array.from({ length: effectCount }, (_, i) =>
        effect(`receipt/${i}`, {
          payload: JSON.stringify({ n: i, big: "X" }).replace('"X"', "12345678901234567890"),
          type: "receipt.asked",
          time: new Date("2026-01-02T03:04:05Z"),
          headers: { "content-type": "application/json", traceparent, "x-what": `größe ${i}` },
          ...(keyed ? { key: `account ${i % 3}` } : {}),
        }),
      ),
    ),
  );
  await until(place.waiting, (waiting) => waiting.length === 0);
  await until(
    () => run.stats().settled,
    (settled) => settled >= effectCount * copies,
  );
  const { outcomes } = await run.stop();
  assert.equal(outcomes.applied, effectCount);
  assert.equal(outcomes.duplicate, effectCount * (copies - 1));
  assert.equal(run.stats().settled, effectCount * copies);
  const sent = (await place.attempts()).filter((line) => line.endsWith(": sent"));
  const unclear = (await place.attempts()).filter((line) => line.endsWith(": ambiguous"));
  assert.deepEqual([sent.length, unclear.length], [effectCount, effectCount]);

  const { rows } = await pool.query<Received>(
    "select id, producer, key, type, body, traceparent from receipt order by n",
  );
  assert.equal(rows.length, effectCount);
  const numbers = rows.map(({ body }) => (JSON.parse(body!) as { n: number }).n);
  assert.deepEqual(
    numbers.toSorted((a, b) => a - b),
    Array.from({ length: effectCount }, (_, i) => i),
  );
  if (keyed) {
    for (let key = 0; key < 3; key++) {
      const ofKey = numbers.filter((n) => n % 3 === key);
      assert.deepEqual(
        ofKey,
        ofKey.toSorted((a, b) => a - b),
      );
    }
  }
  for (const [i, row] of rows.entries()) {
    assert.equal(row.traceparent, traceparent);
    assert.equal(row.body, `{"n":${numbers[i]},"big":12345678901234567890}`);
  }
  return rows;
}

/** The first confirmation of each effect is lost on its way. */
export function twice(destination: Destination): Destination {
  const seen = new Set<string>();
  const lose = ({ digest }: Effect, answer: Answer): Answer => {
    if (!isSent(answer) || seen.has(digest)) return answer;
    seen.add(digest);
    return again(new Error("The answer was lost."), { fault: "destination", ambiguous: true });
  };
  const { deliver, deliverBatch } = destination;
  return {
    ...destination,
    ...{ retryDelayMs: 1, maxRetryDelayMs: 1, pauseAfter: 1_000 },
    ...(deliver === undefined
      ? {}
      : {
          deliver: async (effect, context) => lose(effect, await deliver.call(destination, effect, context)),
        }),
    ...(deliverBatch === undefined
      ? {}
      : {
          async deliverBatch(effects, context) {
            const answers = await deliverBatch.call(destination, effects, context);
            return answers.map((answer, i) => (answer === undefined ? undefined : lose(effects[i]!, answer)));
          },
        }),
  };
}

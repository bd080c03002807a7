import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import fc from "fast-check";
import { checkEffect } from "../../src/outbox/check-effect.ts";
import { createOutboxConsole } from "../../src/outbox/console.ts";
import { derivedEffectId } from "../../src/outbox/effect-id.ts";
import type { EffectInput } from "../../src/outbox/effect.ts";
import { identityDigest } from "../../src/message/identity.ts";
import { effectResults } from "../../src/outbox/results.ts";
import type { TakenEffect } from "../../src/store/outbox.ts";
import type { WaitingEffect } from "../../src/store/outbox-operator.ts";
import { postgres } from "../../src/store/postgres/postgres.ts";
import type { Store } from "../../src/store/store.ts";
import { sql } from "../../src/store/statement.ts";
import { message, testInbox } from "../inbox/support.ts";
import { bundle, testOutbox } from "../outbox/support.ts";
import { effect, startRelay, until } from "./support.ts";

/** Takes what there is, as a relay does. */
async function take({ outbox }: Store, maxEffects = 1_000): Promise<readonly TakenEffect[]> {
  const request = { relayId: randomUUID(), leaseMs: 60_000, maxLanes: 64, maxEffects, maxBytes: 1e9 };
  return (await outbox.take("there", request)).effects;
}

const idsOf = (effects: readonly { readonly id: string }[]): readonly string[] => effects.map(({ id }) => id);

test("what handlers ask for by the hundred is one row in their transaction, and goes out in order", async (t) => {
  const place = await testInbox(t, { lanes: 1 });
  const ids = Array.from({ length: 100 }, (_, i) => `m${i}`);
  const handled = await place.inbox.processBatch(
    ids.map((id) => message(id, { key: "k" })),
    (given, { outbox }) => {
      outbox.send({ destination: "there", key: "a", payload: `1 of ${given.id}` });
      outbox.send({ destination: "there", json: { second: given.id } });
      if (given.id === "m50") throw new Error("not this one");
      return sql`insert into effect (message_id) values (${given.id})`;
    },
  );
  assert.equal(handled.filter(({ outcome }) => outcome === "applied").length, 99);
  const { rows } = await place.pool.query<{ bundles: number; size: number; single: number }>(
    `select count(*)::int as bundles, sum(size)::int as size, (select count(*)::int from outbox) as single
       from outbox_bundle`,
  );
  // The one that threw took the transaction with it; what ran again asked for its effects again.
  assert.equal(rows[0]!.size + rows[0]!.single, 198);
  assert.ok(rows[0]!.bundles > 0 && rows[0]!.single < 50, JSON.stringify(rows[0]));

  const desk = createOutboxConsole({ store: place.store });
  const [status] = await desk.status();
  assert.equal(status!.waiting, 198);
  const { rows: bundles } = await place.pool.query<{ before: string }>(
    "select max(position)::bigint - 1 as before from outbox_bundle",
  );
  const [named] = await desk.waiting({ destination: "there", key: "a", after: bundles[0]!.before, limit: 1 });
  const { effectId: id, producer } = named!;
  const result = async () => (await effectResults(place.store, [{ destination: "there", producer, id }]))[0];
  assert.equal((await result())?.outcome, "waiting");
  assert.deepEqual(
    { ...(await desk.effect({ destination: "there", producer, id }))?.waiting, waitedMs: 0 },
    {
      ...named,
      waitedMs: 0,
    },
  );
  const other = { destination: "elsewhere", producer, id };
  assert.equal(await desk.effect(other), undefined);

  const arrived: string[] = [];
  const texts: string[] = [];
  const relay = await startRelay(t, place, {
    there: async (each) => {
      arrived.push(each.id);
      if (each.key === "a") texts.push(each.text()!);
    },
  });
  await until(() => arrived.length >= 198);
  await relay.stop();
  assert.equal((await result())?.outcome, "sent");
  assert.deepEqual(await desk.waiting(), []);
  const digestOf = (id: string): string =>
    identityDigest("accounting", { tenant: "", producer: "payments", id });
  const applied = ids.filter((id) => id !== "m50");
  assert.deepEqual(
    [...arrived].sort(),
    applied.flatMap((id) => [0, 1].map((n) => derivedEffectId(digestOf(id), n))).sort(),
  );
  assert.equal(texts.length, 99);
  // The messages have one key, so their effects were asked for in the messages' order.
  assert.deepEqual(
    texts.map((text) => text.slice(5)),
    applied,
  );
  assert.equal((await place.pool.query("select from outbox_id")).rowCount, 198);
  assert.equal((await place.pool.query("select from outbox")).rowCount, 0);
});

const text = fc.oneof(
  fc.string({ unit: "binary", maxLength: 20 }),
  fc.constantFrom("NULL", "null", '"', "\\", "{}", "{", ",", '\\"', "é\u{1f600}", " ", "a b", "\n\t"),
);
const storable = text.filter((value) => !value.includes("\0") && value.isWellFormed());
const anyEffect: fc.Arbitrary<EffectInput> = fc.record(
  {
    id: fc.tuple(storable, fc.uuid()).map(([start, end]) => start + end),
    destination: fc.constant("there"),
    payload: fc.oneof(fc.uint8Array({ maxLength: 64 }), storable, fc.constant(null)),
    key: text,
    type: storable,
    tenant: storable,
    time: fc.date({ min: new Date(0), max: new Date(4e12), noInvalidDate: true }),
    headers: fc.dictionary(text, text, { maxKeys: 4 }),
  },
  { requiredKeys: ["id", "destination", "payload"] },
);

test("an effect is the same whether it was stored alone or in a bundle, whatever it holds", async (t) => {
  const place = await testOutbox(t);
  const desk = createOutboxConsole({ store: place.store });
  // In pages, as an operator reads it.
  const list = async (): Promise<readonly unknown[]> => {
    const all: WaitingEffect[] = [];
    for (;;) {
      const page = await desk.waiting({ limit: 7, after: all.at(-1)?.position });
      if (page.length === 0) return all.map((one) => ({ ...one, waitedMs: 0 }));
      all.push(...page);
    }
  };
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(anyEffect, { minLength: 1, maxLength: 40, selector: ({ id }) => id }),
      async (given) => {
        const rowsOf = async (
          store: (effects: readonly EffectInput[]) => Promise<unknown>,
        ): Promise<unknown> => {
          await place.pool.query("truncate outbox, outbox_bundle, outbox_id");
          await store(given);
          const listed = await list();
          await place.pool.query("select outbox_unpack('there', 1000)");
          assert.deepEqual(await list(), listed, "it is listed alike before it is unpacked");
          assert.equal(listed.length, given.length);
          const { rows } = await place.pool.query(
            `select o.lane, o.state, o.digest, o.tenant, o.producer, o.effect_id, o.effect_key, o.effect_type, o.effect_time,
                  o.headers, o.payload, o.due_at, o.expires_at, o.attempts, f.fingerprint
             from outbox o join outbox_id f on f.digest = o.digest and f.position = o.position order by o.position`,
          );
          return rows;
        };
        const alone = await rowsOf((effects) =>
          place.commit((client) => place.outbox.sendAll(client, effects)),
        );
        const bundled = await rowsOf((effects) => place.commit((client) => bundle(place, client, effects)));
        assert.deepEqual(bundled, alone);
        assert.equal((alone as unknown[]).length, given.length);
      },
    ),
    { numRuns: 40 },
  );
});

test("nothing that was asked for behind a bundle goes before it while another relay unpacks it", async (t) => {
  const place = await testOutbox(t);
  await place.store.outbox.openLanes(["there"]);
  await place.commit((client) =>
    bundle(place, client, [effect("1", { key: "k" }), effect("2", { key: "k" })]),
  );
  await place.commit((client) => place.outbox.send(client, effect("3", { key: "k" })));
  await place.commit((client) => bundle(place, client, [effect("4", { key: "k" })]));

  await place.commit(async (client) => {
    await client.query("select outbox_unpack('there', 1)");
    // Somebody else may unpack the next one meanwhile.
    assert.deepEqual(await take(place.store), []);
    assert.deepEqual(await place.waiting(), ["…", "3", "4"]);
  });
  assert.deepEqual(idsOf(await take(place.store)), ["1", "2", "3", "4"]);
});

test("an effect in a bundle whose id was used with another payload is set aside, and only that", async (t) => {
  const place = await testOutbox(t);
  await place.commit((client) =>
    place.outbox.sendAll(client, [effect("a"), effect("b", { payload: "first" })]),
  );
  await place.commit((client) =>
    bundle(
      place,
      client,
      ["a", "b", "c"].map((id) => effect(id)),
    ),
  );
  const listed = await createOutboxConsole({ store: place.store }).waiting();
  // Of what was asked for before only the first asking waits.
  assert.deepEqual(
    listed.map(({ effectId }) => effectId),
    ["a", "b", "c"],
  );
  await place.store.outbox.openLanes(["there"]);
  assert.deepEqual(idsOf(await take(place.store)), ["a", "b", "c"]);
  const { rows } = await place.pool.query(
    "select effect_id, last_code, convert_from(payload, 'utf8') as payload from outbox where state = 'aside'",
  );
  assert.deepEqual(rows, [{ effect_id: "b", last_code: "effect-conflict", payload: '{"id":"b"}' }]);
  const { rows: refusals } = await place.pool.query("select effect_id, status, code from outbox_refusal");
  assert.deepEqual(refusals, [{ effect_id: "b", status: "open", code: "effect-conflict" }]);
});

test("a handler may write an id of the kind that follows from messages itself, and it is one effect", async (t) => {
  const place = await testInbox(t, { lanes: 1 });
  const digest = identityDigest("accounting", { tenant: "", producer: "payments", id: "m0" });
  const outcomes = await place.inbox.processBatch(
    Array.from({ length: 40 }, (_, i) => message(`m${i}`, { key: "k" })),
    (given, { outbox }) => {
      outbox.send({ destination: "there", payload: given.id });
      // One time the same as the first one's, one time not.
      if (given.id === "m20")
        outbox.send({ destination: "there", payload: "m0", id: derivedEffectId(digest, 0) });
      if (given.id === "m30")
        outbox.send({ destination: "there", payload: "m1", id: derivedEffectId(digest, 0) });
      return [];
    },
  );
  assert.deepEqual(
    outcomes.flatMap(({ outcome }, i) => (outcome === "applied" ? [] : [`m${i} ${outcome}`])),
    ["m30 rejected"],
  );
  const relay = await startRelay(t, place, { there: async () => undefined });
  await until(async () => (await place.pool.query("select from outbox_attempt")).rowCount === 39);
  await relay.stop();
});

test("bodies that are sealed are never in a bundle", async (t) => {
  const key = { id: "k1", key: new Uint8Array(32).fill(7) };
  const first = await testInbox(t);
  const store = postgres(first.pool, {
    schema: first.schema,
    payloadKeys: { current: () => key, byId: () => key },
  });
  const inbox = first.inboxWith({ store, lanes: 1 });
  await inbox.processBatch(
    Array.from({ length: 40 }, (_, i) => message(`m${i}`, { key: "k" })),
    (given, { outbox }) => {
      outbox.send({ destination: "there", payload: `secret of ${given.id}` });
      return [];
    },
  );
  const { rows } = await first.pool.query<{ sealed: number; bundles: number }>(
    `select count(*) filter (where payload_key_id = 'k1')::int as sealed,
            (select count(*)::int from outbox_bundle) as bundles from outbox`,
  );
  assert.deepEqual(rows, [{ sealed: 40, bundles: 0 }]);
});

test("a full bundle and more: rows of 1,024 effects, whose places do not meet", async (t) => {
  const place = await testInbox(t, { lanes: 1 });
  await place.inbox.processBatch([message("m1"), message("m2")], (_given, { outbox }) => {
    for (let i = 0; i < 1_500; i++) outbox.send({ destination: "there", payload: String(i) });
    return [];
  });
  const { rows } = await place.pool.query<{ size: number }>(
    "select size from outbox_bundle order by position",
  );
  assert.equal(
    rows.reduce((sum, { size }) => sum + size, 0),
    3_000,
  );
  assert.equal(Math.max(...rows.map(({ size }) => size)), 1_024);
  await place.store.outbox.openLanes(["there"]);
  const texts = (await take(place.store, 5_000)).map(({ payload }) =>
    Number(Buffer.from(payload!).toString()),
  );
  assert.equal(texts.length, 3_000);
});

test("asking for an effect without a handler checks it as before", () => {
  assert.throws(() => checkEffect("orders", null as never, undefined), { code: "invalid-effect" });
  assert.throws(() => checkEffect("orders", { destination: "there", payload: "x" } as never, undefined), {
    code: "invalid-effect",
  });
  assert.equal(checkEffect("orders", effect("a"), undefined).payload!.length, 10);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import type { HandlerOutbox } from "../../src/inbox/handler-outbox.ts";
import { batch, type Handler, type MessageHandler } from "../../src/inbox/handler.ts";
import { identityDigest } from "../../src/message/identity.ts";
import { sql } from "../../src/store/statement.ts";
import { message, recordEffect, testInbox } from "../inbox/support.ts";

const digestOf = (id: string): string =>
  identityDigest("accounting", { tenant: "", producer: "payments", id });

type Place = Awaited<ReturnType<typeof testInbox>>;

const sentBy = async ({ pool }: Place): Promise<readonly string[]> => {
  const { rows } = await pool.query<{ line: string }>(
    `select concat_ws(' ', destination, producer, effect_id, convert_from(payload, 'utf8')) as line
       from outbox order by position`,
  );
  return rows.map(({ line }) => line);
};

const forms: Record<string, Handler> = {
  "that uses tx": async (given, context) => {
    context.outbox.send({ destination: "email", payload: `to ${given.id}`, id: `mail/${given.id}` });
    await recordEffect(given, context);
  },
  "that returns statements": (given, { outbox }) => {
    outbox.send({ destination: "email", payload: `to ${given.id}`, id: `mail/${given.id}` });
    return sql`insert into effect (message_id) values (${given.id})`;
  },
  "for batches": batch((messages, { outbox }) => {
    for (const { id } of messages)
      outbox.send({ destination: "email", payload: `to ${id}`, id: `mail/${id}` });
    return sql`insert into effect (message_id) select unnest(${messages.map(({ id }) => id)}::text[])`;
  }),
};

for (const [name, handler] of Object.entries(forms)) {
  test(`a handler ${name}: its effects are asked for with what it applies, and once`, async (t) => {
    const place = await testInbox(t, { lanes: 2 });
    const ids = Array.from({ length: 40 }, (_, i) => `m${i}`);
    for (let round = 0; round < 2; round++) {
      const outcomes = await place.inbox.processBatch(
        ids.map((id) => message(id, { key: String(id.length) })),
        handler,
      );
      assert.ok(outcomes.every(({ outcome }) => outcome === (round === 0 ? "applied" : "duplicate")));
    }
    assert.deepEqual(
      [...(await sentBy(place))].sort(),
      ids.map((id) => `email accounting mail/${id} to ${id}`).sort(),
    );
    assert.equal(Object.keys(await place.effects()).length, 40);
  });
}

test("an attempt that fails asks for nothing, and the next one asks for the same effects again", async (t) => {
  const place = await testInbox(t);
  const seen: string[][] = [];
  const handler: MessageHandler = async (given, context) => {
    const { outbox } = context;
    const ids = [
      outbox.send({ destination: "email", json: { n: 1 } }),
      outbox.send({ destination: "email", json: { n: 2 } }),
      outbox.send({ destination: "sms", json: { n: 1 }, id: "own" }),
      outbox.send({ destination: "sms", json: { n: 3 } }),
    ];
    seen.push(ids);
    await recordEffect(given, context);
    if (seen.length === 1) throw new Error("not yet");
  };
  assert.equal((await place.inbox.process(message("m1"), handler)).outcome, "failed");
  assert.deepEqual(await sentBy(place), []);
  assert.equal((await place.pool.query("select 1 from outbox_id")).rowCount, 0);
  assert.equal((await place.inbox.process(message("m1"), handler)).outcome, "applied");
  const digest = digestOf("m1");
  assert.deepEqual(seen, Array(2).fill([`${digest}-0`, `${digest}-1`, "own", `${digest}-2`]));
  assert.deepEqual(await sentBy(place), [
    `email accounting ${digest}-0 {"n":1}`,
    `email accounting ${digest}-1 {"n":2}`,
    'sms accounting own {"n":1}',
    `sms accounting ${digest}-2 {"n":3}`,
  ]);
});

test("a message whose effect has another's id and another payload is rejected alone", async (t) => {
  const place = await testInbox(t, { lanes: 1 });
  const handler: MessageHandler = (given, { outbox }) => {
    const { effect } = given.json() as { effect: string };
    outbox.send({ destination: "email", id: effect, payload: given.id });
    return sql`insert into effect (message_id) values (${given.id})`;
  };
  const given = (id: string, effect: string) =>
    message(id, { payload: JSON.stringify({ effect }), key: "k" });
  await place.inbox.process(given("first", "a"), handler);
  // One of them with an effect of before, two of them with one another's.
  const outcomes = await place.inbox.processBatch(
    [given("1", "b"), given("2", "a"), given("3", "c"), given("4", "c"), given("5", "d")],
    handler,
  );
  assert.deepEqual(
    outcomes.map(({ outcome }) => outcome),
    ["applied", "rejected", "applied", "rejected", "applied"],
  );
  assert.deepEqual((await place.quarantined()).map(({ code, message_id: id }) => `${id} ${code}`).sort(), [
    "2 effect-conflict",
    "4 effect-conflict",
  ]);
  assert.deepEqual([...(await sentBy(place))].sort(), [
    "email accounting a first",
    "email accounting b 1",
    "email accounting c 3",
    "email accounting d 5",
  ]);
});

test("an outbox is over when its handler has settled, and says what is wrong with an effect", async (t) => {
  const place = await testInbox(t, {
    outbox: { producer: "shop", headers: () => ({ traceparent: "00-1" }) },
  });
  let kept: HandlerOutbox | undefined;
  await place.inbox.process(message("m1"), (_, { outbox }) => {
    kept = outbox;
    assert.throws(() => outbox.send({ destination: "", payload: "x" }), { code: "invalid-effect" });
    outbox.send({ destination: "email", payload: "x", id: "e" });
    outbox.send({ destination: "email", payload: "x", id: "e" });
  });
  assert.throws(() => kept?.send({ destination: "email", payload: "x" }), { code: "transaction-sealed" });
  assert.deepEqual(await sentBy(place), ["email shop e x"]);
  const { rows } = await place.pool.query<{ headers: string }>("select headers from outbox");
  assert.deepEqual(JSON.parse(rows[0]!.headers), { traceparent: "00-1" });
  const answer = await place.inbox.processBatch(
    [message("m2")],
    batch((_, { outbox }) => void outbox.send({ destination: "email", payload: "x" })),
  );
  assert.equal(answer[0]?.outcome, "rejected");
  assert.throws(() => place.inboxWith({ outbox: { producer: "" } }), {
    code: "invalid-option",
    message: /outbox\.producer/,
  });
});

test("effects of pending messages are asked for in the transaction that takes them out of there", async (t) => {
  const place = await testInbox(t);
  const ids = Array.from({ length: 30 }, (_, i) => `m${i}`);
  for (const id of ids) await place.inbox.accept(message(id, { key: "k" }));
  const work = place.inbox.work(
    (given, { outbox }) => {
      outbox.send({ destination: "email", payload: given.id, key: "k", id: given.id });
      return sql`insert into effect (message_id) values (${given.id})`;
    },
    { untilDrained: true },
  );
  await work.finished;
  assert.deepEqual(
    await sentBy(place),
    ids.map((id) => `email accounting ${id} ${id}`),
  );
});

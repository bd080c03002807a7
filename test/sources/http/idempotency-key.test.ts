import assert from "node:assert/strict";
import { createServer } from "node:http";
import test from "node:test";
import { sql } from "../../../src/index.ts";
import { httpReceiver, toNodeListener, type HttpReceiverOptions } from "../../../src/sources/http/http.ts";
import { gate } from "../../inbox/support.ts";
import type { Scope } from "../../support/cleanup.ts";
import { httpCase, listen, problemIn, record, send as sendTo, type Sent } from "./support.ts";

const principal: HttpReceiverOptions["principal"] = ({ headers }) => {
  const who = headers.get("authorization")?.replace("Bearer ", "");
  return who === undefined ? undefined : { tenant: "t", producer: who };
};

const pay: HttpReceiverOptions["handler"] = async (message, context) => {
  await record(message, context);
  const { amount } = message.json() as { amount: number };
  if (amount < 0) return Response.json({ error: "negative" }, { status: 400 });
  return new Response(JSON.stringify({ paid: amount, at: performance.now() }), {
    status: 201,
    headers: {
      "content-type": "application/json",
      location: "/payments/1",
      "set-cookie": "session=secret",
      etag: '"1"',
    },
  });
};

const keyed = (t: Scope, handler = pay) => httpCase(t, { identity: "idempotency-key", principal, handler });

const payment = (key: string | undefined, body = '{"amount":5}', who = "alice"): Sent => ({
  headers: { authorization: `Bearer ${who}`, ...(key === undefined ? {} : { "idempotency-key": key }) },
  body,
});

test("the first request is answered by the handler, every copy of it with the very same answer", async (t) => {
  const { send, effects, pool } = await keyed(t);
  const first = await send(payment('"k-1"'));
  assert.deepEqual(
    [first.status, first.headers["location"], first.headers["etag"]],
    [201, "/payments/1", '"1"'],
  );
  assert.equal(first.headers["set-cookie"], undefined, "what is not kept is not given the first time either");
  for (let i = 0; i < 2; i++) {
    const copy = await send(payment('"k-1"'));
    assert.deepEqual([copy.status, copy.body.toString()], [201, first.body.toString()]);
    assert.deepEqual(
      [copy.headers["location"], copy.headers["idempotent-replayed"]],
      ["/payments/1", "true"],
    );
  }
  assert.equal(first.headers["idempotent-replayed"], undefined);
  assert.deepEqual(await effects(), { "k-1": 1 });
  const { rows } = await pool.query("select status, request, headers from answer");
  assert.equal(rows.length, 1);
  assert.doesNotMatch(JSON.stringify(rows), /secret/);
});

test("an answer that says no is an answer too: kept and given again", async (t) => {
  const { send } = await keyed(t);
  const first = await send(payment('"k"', '{"amount":-1}'));
  const copy = await send(payment('"k"', '{"amount":-1}'));
  assert.deepEqual([first.status, copy.status, copy.body.toString()], [400, 400, '{"error":"negative"}']);
});

test("a key is missing, malformed, or its sender unknown: refused before anything is claimed", async (t) => {
  const { send, pool } = await keyed(t);
  assert.deepEqual(problemIn(await send(payment(undefined))).code, "idempotency-key-missing");
  for (const key of [
    "k-1",
    '""',
    '"a',
    '"a"b',
    '"a";p=1',
    "'a'",
    `"${"k".repeat(256)}"`,
    '"a", "b"',
    ":YQ==:",
  ]) {
    const answer = await send(payment(key));
    assert.deepEqual([answer.status, problemIn(answer).code], [400, "idempotency-key-invalid"], key);
  }
  const nobody = await send({ headers: { "idempotency-key": '"k"' }, body: "{}" });
  assert.deepEqual([nobody.status, problemIn(nobody).code], [401, "not-authenticated"]);
  const { rows } = await pool.query("select count(*)::int as n from message");
  assert.deepEqual(rows, [{ n: 0 }]);
});

test("a key belongs to its principal: another one's answer is never given (SEC-01)", async (t) => {
  const { send, effects } = await keyed(t);
  const alice = await send(payment('"k"'));
  const bob = await send(payment('"k"', '{"amount":5}', "bob"));
  assert.deepEqual([alice.status, bob.status], [201, 201]);
  assert.notEqual(alice.body.toString(), bob.body.toString());
  assert.deepEqual(await effects(), { k: 2 });
});

test("a key with another body or another target is 422, and nothing of it is done", async (t) => {
  const { send, effects, quarantined } = await keyed(t);
  await send(payment('"k"'));
  const other = await send(payment('"k"', '{"amount":6}'));
  assert.deepEqual([other.status, problemIn(other).code], [422, "idempotency-key-reused"]);
  const elsewhere = await send({ ...payment('"k"'), path: "/accounts/2/payments" });
  assert.equal(elsewhere.status, 422);
  assert.deepEqual(await effects(), { k: 1 });
  assert.deepEqual(
    (await quarantined()).map(({ code }) => code),
    ["payload-conflict"],
  );
});

test("while the first runs, its copy is 409 and another body 422, in this process and in another (HSH-05)", async (t) => {
  const inside = gate();
  const go = gate();
  const slow: HttpReceiverOptions["handler"] = async (message, context) => {
    inside.open();
    await go.opened;
    return pay(message, context);
  };
  const here = await keyed(t, slow);
  // Another process has its own inbox and receiver; nothing but the database is shared.
  const elsewhere = httpReceiver({
    inbox: here.inboxWith({}),
    identity: "idempotency-key",
    principal,
    handler: pay,
  });
  const port = await listen(t, createServer(toNodeListener(elsewhere)));
  const first = here.send(payment('"k"'));
  await inside.opened;
  for (const send of [here.send, (sent: Sent) => sendTo(port, sent)]) {
    const copy = await send(payment('"k"'));
    assert.deepEqual(
      [copy.status, problemIn(copy).code, copy.headers["retry-after"]],
      [409, "idempotency-key-in-use", "1"],
    );
    const other = await send(payment('"k"', '{"amount":6}'));
    assert.deepEqual([other.status, problemIn(other).code], [422, "idempotency-key-reused"]);
    const target = await send({ ...payment('"k"'), path: "/other" });
    assert.equal(target.status, 422);
  }
  go.open();
  const { status, body } = await first;
  assert.equal(status, 201);
  const after = await sendTo(port, payment('"k"'));
  assert.deepEqual([after.status, after.body.toString()], [201, body.toString()]);
  assert.deepEqual(await here.effects(), { k: 1 });
});

test("many copies at once: one effect, and each is told the answer or to come again", async (t) => {
  const { send, effects } = await keyed(t);
  const all = await Promise.all(Array.from({ length: 20 }, () => send(payment('"k"'))));
  const done = all.filter(({ status }) => status === 201);
  assert.ok(done.length >= 1);
  assert.equal(new Set(done.map(({ body }) => body.toString())).size, 1);
  assert.ok(
    all.every(({ status }) => status === 201 || status === 409),
    all.map(({ status }) => status).join(),
  );
  assert.deepEqual(await effects(), { k: 1 });
});

test("a handler that failed leaves the key free: the retry runs and is answered", async (t) => {
  let runs = 0;
  const { send, effects, pool } = await keyed(t, async (message, context) => {
    await record(message, context);
    if (runs++ === 0) throw new Error("the card processor is away");
    return pay(message, context);
  });
  const first = await send(payment('"k"'));
  assert.deepEqual([first.status, problemIn(first).code], [500, "handler-failed"]);
  assert.doesNotMatch(first.body.toString(), /card/);
  assert.deepEqual((await pool.query("select from answer")).rowCount, 0);
  assert.equal((await send(payment('"k"'))).status, 201);
  assert.deepEqual(await effects(), { k: 2 });
});

test("statements and no answer at all are kept as 204; what cannot be kept fails at once", async (t) => {
  const { send, effects, pool } = await keyed(t, async (message, context) => {
    if (message.id === "none") return record(message, context);
    if (message.id === "statement") return sql`insert into effect (message_id) values (${message.id})`;
    await record(message, context);
    return message.id === "large" ? new Response("x".repeat(300_000)) : new Response(null, { status: 503 });
  });
  for (const key of ["none", "statement"]) {
    assert.equal((await send(payment(`"${key}"`))).status, 204);
    const copy = await send(payment(`"${key}"`));
    assert.deepEqual([copy.status, copy.headers["idempotent-replayed"]], [204, "true"], key);
  }
  for (const key of ["large", "unavailable"]) assert.equal((await send(payment(`"${key}"`))).status, 500);
  assert.deepEqual(await effects(), { none: 1, statement: 1 });
  const { rows } = await pool.query<{ error: string }>("select error from attempt order by id");
  assert.match(rows[0]!.error, /over 262144 bytes/);
  assert.match(rows[1]!.error, /answered 503/);
});

import assert from "node:assert/strict";
import test from "node:test";
import { Webhook } from "standardwebhooks";
import { createHmac } from "node:crypto";
import { PermanentError, retryIn, sql } from "../../../src/index.ts";
import { httpReceiver, verifiedBy } from "../../../src/sources/http/http.ts";
import { sampleJson } from "../../message/samples.ts";
import { testInbox } from "../../inbox/support.ts";
import { httpCase, problemIn, record, stripeSignature } from "./support.ts";

interface Sample {
  readonly secret: string;
  readonly receivedAt: readonly number[];
  readonly deliveries: readonly { readonly headers: Record<string, string>; readonly rawBody: string }[];
}

test("Stripe deliveries: retries are duplicates, stale, forged and cut signatures never reach the inbox (SEC-01, SEC-03)", async (t) => {
  const { secret, receivedAt, deliveries } = sampleJson<Sample>("08-webhook-stripe-like.json");
  let now = 0;
  const { send, effects, pool } = await httpCase(t, {
    identity: "stripe",
    verify: { scheme: "stripe", secret },
    now: () => now * 1_000,
  });
  const statuses: number[] = [];
  for (const [i, { headers, rawBody }] of deliveries.entries()) {
    now = receivedAt[i]!;
    statuses.push((await send({ headers, body: rawBody })).status);
  }
  assert.deepEqual(statuses, [204, 204, 401, 401, 204, 204, 401]);
  assert.deepEqual(await effects(), { evt_test_0001: 1, evt_test_0002: 1 });

  // The forged delivery has not kept the id from the genuine one.
  const body = deliveries[3]!.rawBody;
  const headers = { "stripe-signature": stripeSignature(secret, now, body) };
  assert.equal((await send({ headers, body })).status, 204);
  assert.equal((await effects())["evt_test_0999"], 1);

  // A request that was verified at the door and applied needs no fresh signature to be found as a duplicate later: the
  // provider's own retry is signed anew, and a captured one stays outside.
  now += 3_600;
  assert.equal((await send({ headers, body })).status, 401);
  assert.equal(
    (await send({ headers: { "stripe-signature": stripeSignature(secret, now, body) }, body })).status,
    204,
  );
  const { rows } = await pool.query("select count(*)::int as n from quarantine");
  assert.deepEqual(rows, [{ n: 0 }]);
});

test("Shopify deliveries: a retry is a duplicate, a second subscription of the same event runs (IDN-03)", async (t) => {
  const { secret, deliveries } = sampleJson<Sample>("10-webhook-shopify-like.json");
  const { send, effects } = await httpCase(t, {
    identity: "shopify",
    verify: { scheme: "shopify", secret: ["old secret", secret] },
  });
  for (const { headers, rawBody } of deliveries)
    assert.equal((await send({ headers, body: rawBody })).status, 204);
  assert.deepEqual(Object.values(await effects()), [1, 1]);
  const [{ headers, rawBody } = { headers: {}, rawBody: "" }] = deliveries;
  const forged = { ...headers, "x-shopify-webhook-id": "other" };
  const { status } = await send({ headers: forged, body: `${rawBody} ` });
  assert.equal(status, 401);
  assert.equal((await effects())["other"], undefined);
});

test("the answer makes the sender stop for what is settled and come again for what is not", async (t) => {
  const secret = "s";
  let failures = 0;
  const { send, effects, quarantined } = await httpCase(t, {
    identity: "stripe",
    verify: { scheme: "stripe", secret },
    handler: async (message, context) => {
      if (message.id === "never") throw new PermanentError("secret reason");
      if (message.id === "later") return retryIn(7_000);
      if (message.id === "fails" && failures++ === 0) throw new Error("secret error text");
      if (message.id === "statement") return sql`insert into effect (message_id) values (${message.id})`;
      return record(message, context);
    },
  });
  const post = (id: string, more = ""): ReturnType<typeof send> => {
    const body = `{"id":"${id}"${more}}`;
    return send({
      headers: { "stripe-signature": stripeSignature(secret, Math.floor(Date.now() / 1_000), body) },
      body,
    });
  };
  assert.deepEqual([(await post("statement")).status, (await post("statement")).status], [204, 204]);

  const failed = await post("fails");
  assert.deepEqual(
    [failed.status, problemIn(failed).code, failed.headers["retry-after"]],
    [500, "handler-failed", "1"],
  );
  assert.equal((await post("fails")).status, 204);
  const later = await post("later");
  assert.deepEqual([later.status, later.headers["retry-after"]], [503, "7"]);

  const never = await post("never");
  assert.deepEqual([never.status, never.body.length], [202, 0]);
  assert.equal((await post("never")).status, 202);
  assert.equal((await post("statement", ',"changed":1')).status, 202, "a conflict is kept");
  assert.equal((await post("")).status, 202, "what has no id is kept, as its sender is known");
  for (const { body } of [failed, later]) assert.doesNotMatch(body.toString(), /secret/);
  assert.deepEqual(await effects(), { statement: 1, fails: 1 });
  assert.deepEqual(
    (await quarantined()).map(({ code }) => code),
    ["handler-rejected", "payload-conflict", "no-identity"],
  );
});

test("copies that arrive together take effect once, and all are told so", async (t) => {
  const secret = "s";
  const { send, effects } = await httpCase(t, { identity: "github", verify: { scheme: "github", secret } });
  const body = '{"action":"opened"}';
  const headers = {
    "x-github-delivery": "d-1",
    "x-hub-signature-256": `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`,
  };
  const all = await Promise.all(Array.from({ length: 20 }, () => send({ headers, body })));
  assert.deepEqual(new Set(all.map(({ status }) => status)), new Set([204]));
  assert.deepEqual(await effects(), { "d-1": 1 });
});

test("a body that cannot be read from an unknown sender is refused and leaves nothing behind", async (t) => {
  const { send, quarantined } = await httpCase(t, { identity: "cloudevents" });
  const answer = await send({
    body: '{"specversion":"1.0","secret":"x"}',
    headers: { "content-type": "application/cloudevents+json" },
  });
  assert.equal(answer.status, 400);
  assert.doesNotMatch(answer.body.toString(), /secret/);
  assert.deepEqual(await quarantined(), []);
});

test("credentials in headers stay out of messages and quarantine", async (t) => {
  let seen: Readonly<Record<string, string>> = {};
  const { send } = await httpCase(t, {
    identity: "standard-webhooks",
    verify: () => true,
    secretHeaders: ["X-Our-Token"],
    handler: ({ headers }) => {
      seen = headers;
    },
  });
  const headers = {
    "webhook-id": "1",
    authorization: "Bearer x",
    cookie: "a=b",
    "x-our-token": "y",
    "x-other": "z",
  };
  assert.equal((await send({ headers, body: "{}" })).status, 204);
  assert.deepEqual(
    [seen["authorization"], seen["cookie"], seen["x-our-token"], seen["x-other"]],
    [undefined, undefined, undefined, "z"],
  );
});

test("a verifier that fails is asked again later, and its words are not passed on", async (t) => {
  const { send, effects } = await httpCase(t, {
    identity: "stripe",
    verify: async () => {
      throw new Error("the key server at 10.0.0.1 is away");
    },
  });
  const answer = await send({ body: '{"id":"1"}' });
  assert.equal(answer.status, 503);
  assert.doesNotMatch(answer.body.toString(), /10\.0/);
  assert.deepEqual(await effects(), {});
});

test("CloudEvents by HTTP: source and id name the event, a retry is a duplicate, a batch is several", async (t) => {
  const { deliveries } = sampleJson<Sample>("01-cloudevents-structured-http.json");
  const { send, pool, effects } = await httpCase(t, {
    identity: "cloudevents",
    verify: false,
    handler: async ({ producer, id }, { tx }) => {
      await tx.query("insert into effect (message_id) values ($1)", [`${producer} ${id}`]);
      if (id === "102" && failBatch) throw new Error("not now");
    },
  });
  let failBatch = true;
  for (const { headers, rawBody } of deliveries.slice(0, 3))
    assert.equal((await send({ headers, body: rawBody })).status, 204);
  const { headers, rawBody } = deliveries[3]!;
  const first = await send({ headers, body: rawBody });
  assert.deepEqual(
    [first.status, first.headers["retry-after"]],
    [503, "1"],
    "one of the batch is to come again",
  );
  failBatch = false;
  assert.equal((await send({ headers, body: rawBody })).status, 204);
  assert.deepEqual(await effects(), {
    "/billing/eu 100": 1,
    "/billing/us 100": 1,
    "/billing/eu 101": 1,
    "/billing/eu 102": 1,
  });
  const { rows } = await pool.query("select count(*)::int as n from answer");
  assert.deepEqual(rows, [{ n: 0 }], "what is answered alike each time is not kept");
});

test("options that would be unsafe or wrong are refused when the receiver is made", async (t) => {
  const { inbox } = await testInbox(t);
  const make = (more: object) => (): unknown =>
    httpReceiver({ inbox, handler: record, identity: "cloudevents", ...more });
  const wrong: readonly (readonly [object, RegExp])[] = [
    [{ identity: "stripe" }, /needs verify/],
    [{ identity: "nothing" }, /There is no format/],
    [{ identity: "idempotency-key" }, /needs principal/],
    [{ verify: { scheme: "md5", secret: "x" } }, /verify\.scheme must be one of/],
    [{ verify: { scheme: "stripe", secret: "" } }, /verify\.secret/],
    [{ verify: { scheme: "stripe", secret: [] } }, /verify\.secret/],
    [{ verify: { scheme: "standard-webhooks", secret: "whsec_!" } }, /whsec_ and base64/],
    [{ verify: { scheme: "stripe", secret: "x", toleranceMs: -1 } }, /toleranceMs/],
    [{ maxBodyBytes: 0 }, /maxBodyBytes must be/],
    [{ handler: undefined }, /handler must be/],
  ];
  for (const [more, expected] of wrong) {
    assert.throws(make(more), (error: Error & { code?: string }) => {
      assert.match(error.message, expected);
      assert.doesNotMatch(error.message, /whsec_!/);
      return error.code === "invalid-option";
    });
  }
});

test("a vendor's own check, which throws, is the verification: what it lets in is taken, nothing else is claimed", async (t) => {
  const secret = `whsec_${Buffer.from("a secret of at least 24 bytes").toString("base64")}`;
  const webhook = new Webhook(secret);
  const { send, effects, pool } = await httpCase(t, {
    identity: "standard-webhooks",
    verify: verifiedBy(({ headers, body }) =>
      webhook.verify(Buffer.from(body).toString(), Object.fromEntries(headers)),
    ),
  });
  const at = new Date();
  const body = '{"a":1}';
  const headers = {
    "webhook-id": "w1",
    "webhook-timestamp": String(Math.floor(at.getTime() / 1_000)),
    "webhook-signature": webhook.sign("w1", at, body),
  };
  for (const forged of [{ ...headers, "webhook-id": "w2" }, { "webhook-id": "w1" }]) {
    assert.equal((await send({ headers: forged, body })).status, 401);
  }
  assert.equal((await send({ headers, body: '{"a":2}' })).status, 401);
  assert.equal((await pool.query("select from message")).rowCount, 0);
  for (let i = 0; i < 2; i++) assert.equal((await send({ headers, body })).status, 204);
  assert.deepEqual(await effects(), { w1: 1 });
});

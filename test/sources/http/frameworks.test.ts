import assert from "node:assert/strict";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import test from "node:test";
import express from "express";
import fastify from "fastify";
import { Hono } from "hono";
import {
  httpReceiver,
  toFastifyPlugin,
  toNodeListener,
  type HttpReceiver,
} from "../../../src/sources/http/http.ts";
import { sampleJson } from "../../message/samples.ts";
import { testInbox, type TestInbox } from "../../inbox/support.ts";
import { onTestEnd, type Scope } from "../../support/cleanup.ts";
import { record, send } from "./support.ts";

const sample = sampleJson<{
  secret: string;
  deliveries: { headers: Record<string, string>; rawBody: string }[];
}>("10-webhook-shopify-like.json");
const [delivery] = sample.deliveries;
const { headers, rawBody: body } = delivery!;

async function shop(t: Scope): Promise<TestInbox & { receiver: HttpReceiver }> {
  const inbox = await testInbox(t);
  const verify = { scheme: "shopify", secret: sample.secret } as const;
  return {
    ...inbox,
    receiver: httpReceiver({ inbox: inbox.inbox, identity: "shopify", verify, handler: record }),
  };
}

test("Express: one line, and a JSON parser before it is named as what is wrong", async (t) => {
  const { receiver, effects } = await shop(t);
  const app = express();
  app.post("/hooks", toNodeListener(receiver));
  app.post("/parsed", express.json({ type: "*/*" }), toNodeListener(receiver));
  const server = app.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestEnd(t, () => void server.close());
  const { port } = server.address() as AddressInfo;
  for (let i = 0; i < 2; i++) assert.equal((await send(port, { headers, body, path: "/hooks" })).status, 204);
  assert.equal((await send(port, { headers, body: `${body} `, path: "/hooks" })).status, 401);
  const json = { ...headers, "content-type": "application/json" };
  assert.equal((await send(port, { headers: json, body, path: "/parsed" })).status, 503);
  assert.deepEqual(Object.values(await effects()), [1]);
});

test("Fastify: a plugin leaves its parsers out for the prefix, and nowhere else", async (t) => {
  const { receiver, effects } = await shop(t);
  const app = fastify();
  onTestEnd(t, () => app.close());
  app.register(toFastifyPlugin(receiver), { prefix: "/hooks" });
  app.post("/orders", (request) => ({ parsed: request.body }));
  await app.listen({ port: 0, host: "127.0.0.1" });
  const { port } = app.server.address() as AddressInfo;
  const json = { ...headers, "content-type": "application/json" };
  for (let i = 0; i < 2; i++)
    assert.equal((await send(port, { headers: json, body, path: "/hooks" })).status, 204);
  assert.equal((await send(port, { headers: json, body: `${body} `, path: "/hooks" })).status, 401);
  assert.equal((await send(port, { method: "GET", path: "/hooks" })).status, 405);
  const other = await send(port, {
    headers: { "content-type": "application/json" },
    body: "[1]",
    path: "/orders",
  });
  assert.deepEqual(JSON.parse(other.body.toString()), { parsed: [1] });
  assert.deepEqual(Object.values(await effects()), [1]);
});

test("Hono, and whatever speaks Request and Response: the receiver is the handler", async (t) => {
  const { receiver, effects } = await shop(t);
  const app = new Hono();
  app.post("/hooks", (c) => receiver(c.req.raw));
  for (let i = 0; i < 2; i++)
    assert.equal((await app.request("/hooks", { method: "POST", headers, body })).status, 204);
  assert.equal((await app.request("/hooks", { method: "POST", headers, body: "{}" })).status, 401);
  assert.deepEqual(Object.values(await effects()), [1]);
});

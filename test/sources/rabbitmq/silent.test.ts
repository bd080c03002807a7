import assert from "node:assert/strict";
import test from "node:test";
import { faultProxy } from "../../support/fault-proxy.ts";
import { clients, drive, idOf, testQueue, until } from "./support.ts";

// What amqplib sends before it waits: the protocol's header, and channel.open (class 20, method 10).
const silences = { "the handshake": "AMQP", "the opening of a channel": "\u0000\u0014\u0000\u000a" };

for (const [what, sent] of Object.entries(silences)) {
  test(`amqplib: a peer that is silent at ${what} is left, and another connection made`, async (t) => {
    const at = await testQueue(t);
    if (at === undefined) return;
    const proxy = await faultProxy(t, at);
    const url = at.url.replace(`:${at.port}`, `:${proxy.port}`);
    const driven = await drive(t, { client: clients.amqplib(url), queue: at.queue, answerTimeoutMs: 300 });
    proxy.goSilentAfter(sent);
    proxy.cutAll();
    await at.publish("{}", { messageId: "a" });
    await until("the silence is seen", () => driven.warnings.some((text) => text.includes("within 300 ms")));
    const a = await driven.next();
    assert.equal(idOf(a), "a");
    await driven.settle(a);
  });
}

import assert from "node:assert/strict";
import test from "node:test";
import { formats } from "../../../src/index.ts";
import { sqs } from "../../../src/sources/sqs/sqs.ts";
import { faultProxy } from "../../support/fault-proxy.ts";
import { idOf, inHand } from "./hand.ts";
import { body, clientOf, testQueue } from "./support.ts";

const identity = formats.sqs({ idPath: "/id" });

for (const fifo of [false, true]) {
  test(`a connection that is cut again and again holds nothing up for long, ${fifo ? "FIFO" : "standard"}`, async (t) => {
    const queue = await testQueue(t, { fifo, visibilitySeconds: 2 });
    if (queue === undefined) return;
    const proxy = await faultProxy(t, { host: queue.facts.host, port: queue.facts.port });
    const client = clientOf(t, { ...queue.facts, endpoint: `http://${proxy.host}:${proxy.port}` });
    const hand = await inHand(t, sqs({ client, queueUrl: queue.queueUrl, identity }));
    const ids = Array.from({ length: 60 }, (_, i) => `m${i}`);
    await queue.send(ids.map((id, i) => ({ body: body(id), ...(fifo ? { group: `g${i % 7}` } : {}) })));
    const missing = new Set(ids);
    let taken = 0;
    while (missing.size > 0) {
      const delivery = await hand.next();
      missing.delete(idOf(delivery));
      // At any point of a request or an answer.
      if (++taken % 8 === 0) setTimeout(() => proxy.cutAll(), taken % 5);
      await hand.ack(delivery);
    }
    await queue.empty();
    assert.equal(missing.size, 0);
  });
}

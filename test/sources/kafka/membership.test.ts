import assert from "node:assert/strict";
import test, { describe } from "node:test";
import { InboxError } from "../../../src/errors.ts";
import { kafka } from "../../../src/sources/kafka/kafka.ts";
import { expel } from "./expel.ts";
import { ack, assertCommitted, clients, drive, identity, idOf, testTopic } from "./support.ts";
import { chosenClients } from "../../services/kafka-clients.ts";

// What the broker says to a member, on the real broker.

describe("membership", { concurrency: 6 }, () => {
  for (const [name, makeClient] of chosenClients(clients)) {
    test(`${name}: a member that the group forgot has its commits refused, joins again and is given what it had`, async (t) => {
      const at = await testTopic(t);
      const client = at && (await makeClient(t, at));
      if (at === undefined || client === undefined) return;
      const source = kafka({
        ...{ client, topics: [at.topic], groupId: at.groupId, identity },
        // One that holds its request to join back would do so for what is in hand.
        ...{ commitIntervalMs: 20, revokeTimeoutMs: 500 },
      });
      await at.publish([{ id: "a" }, { id: "b" }]);
      const driven = await drive(t, source);
      const [a] = await driven.take(2);
      await expel(at);
      await source.settle([[a!, ack]]);
      await driven.until("a refused commit", () => driven.warnings.some((text) => /commit/.test(text)));
      assert.ok((await at.committed()) <= 0);
      assert.deepEqual((await driven.take(2)).map(idOf), ["a", "b"]);
      driven.ackAll();
      await assertCommitted(at, 2);
    });

    test(`${name}: a member that the broker would never take ends the source with an error`, async (t) => {
      const at = await testTopic(t);
      // Shorter than the broker allows.
      const client = at && (await makeClient(t, { ...at, sessionTimeoutMs: 200 }));
      if (at === undefined || client === undefined) return;
      const source = kafka({ client, topics: [at.topic], groupId: at.groupId, identity });
      const driven = await drive(t, source);
      const error = await driven.ended;
      assert.ok(error instanceof InboxError && error.code === "source-failed", String(error));
      assert.match(error.message, /session/i);
    });
  }
});

import assert from "node:assert/strict";
import test, { describe } from "node:test";
import { isRejected, type Message } from "../../../src/message/message.ts";
import { kafka } from "../../../src/sources/kafka/kafka.ts";
import { chosenClients } from "../../services/kafka-clients.ts";
import {
  ack,
  assertCommitted,
  clients,
  drive,
  identity,
  idOf,
  testTopic,
  type TestTopic,
} from "./support.ts";

// What every client must do with offsets and records, on the real broker.

describe("positions", { concurrency: 6 }, () => {
  for (const [name, makeClient] of chosenClients(clients)) {
    const open = async (t: test.TestContext, at: TestTopic) => {
      const client = await makeClient(t, at);
      if (client === undefined) return undefined;
      return () => kafka({ client, topics: [at.topic], groupId: at.groupId, identity, commitIntervalMs: 20 });
    };

    test(`${name}: commits up to the first unsettled record, and the next owner begins there`, async (t) => {
      const at = await testTopic(t);
      const make = at && (await open(t, at));
      if (at === undefined || make === undefined) return;
      await at.publish(["a", "b", "c", "d"].map((id) => ({ id })));
      const first = await drive(t, make());
      const [a, b, c, d] = await first.take(4);
      assert.ok((await at.committed()) <= 0);
      await first.source.settle([
        [d!, ack],
        [b!, ack],
      ]);
      assert.equal(await first.source.lag!(), 4);
      await first.source.settle([[a!, ack]]);
      await assertCommitted(at, 2);
      assert.equal(await first.source.lag!(), 2);
      await first.source.stop();
      await first.source.close();
      const second = await drive(t, make());
      assert.deepEqual((await second.take(2)).map(idOf), ["c", "d"]);
      // Settled after its source was closed: nothing comes of it.
      await first.source.settle([[c!, ack]]);
      assert.equal(await at.committed(), 2);
      second.ackAll();
      await assertCommitted(at, 4);
      assert.deepEqual([...first.warnings, ...second.warnings], []);
    });

    test(`${name}: a group without offsets begins at the earliest record`, async (t) => {
      const at = await testTopic(t);
      const make = at && (await open(t, at));
      if (at === undefined || make === undefined) return;
      await at.publish([{ id: "before" }]);
      const driven = await drive(t, make());
      assert.deepEqual((await driven.take(1)).map(idOf), ["before"]);
    });

    test(`${name}: a retry is handed over again after its delay, and holds the offset meanwhile`, async (t) => {
      const at = await testTopic(t);
      const make = at && (await open(t, at));
      if (at === undefined || make === undefined) return;
      await at.publish([{ id: "a" }, { id: "b" }]);
      const driven = await drive(t, make());
      const [a, b] = await driven.take(2);
      const startedAt = performance.now();
      await driven.source.settle([
        [a!, { kind: "retry", afterMs: 300 }],
        [b!, ack],
      ]);
      const [again] = await driven.take(1);
      assert.ok(performance.now() - startedAt >= 295);
      assert.deepEqual([idOf(again!), again!.redelivered], ["a", true]);
      assert.ok((await at.committed()) <= 0);
      await driven.source.settle([[again!, ack]]);
      await assertCommitted(at, 2);
    });

    test(`${name}: passes the marks and gaps that transactions leave in the log`, async (t) => {
      const at = await testTopic(t);
      const make = at && (await open(t, at));
      if (at === undefined || make === undefined) return;
      const producer = at.client.producer({
        transactionalId: `tx-${at.topic}`,
        maxInFlightRequests: 1,
        idempotent: true,
      });
      await producer.connect();
      t.after(() => producer.disconnect());
      for (const [id, commits] of [
        ["a", true],
        ["aborted", false],
        ["b", true],
        ["gone", false],
      ] as const) {
        const transaction = await producer.transaction();
        const message = { value: id, headers: { "message-id": id }, partition: 0 };
        await transaction.send({ topic: at.topic, messages: [message] });
        await (commits ? transaction.commit() : transaction.abort());
      }
      const driven = await drive(t, make());
      driven.ackAll();
      // Four records and four marks; the last record was aborted, so no record comes after it.
      await assertCommitted(at, 8);
      assert.deepEqual(driven.delivered.map(idOf), ["a", "b"]);
      assert.equal(await driven.source.lag!(), 0);
      assert.deepEqual(driven.warnings, []);
    });

    test(`${name}: keys, values and headers arrive as they were sent, whatever is in them`, async (t) => {
      const at = await testTopic(t);
      const make = at && (await open(t, at));
      if (at === undefined || make === undefined) return;
      const large = "x".repeat(500_000);
      await at.publish([
        { id: "tombstone", key: "k", value: null },
        { id: "no key", key: null, value: "v" },
        { id: "empty", key: "", value: "" },
        { id: "bytes", key: Buffer.from([0xff, 0xfe]), value: Buffer.from([0, 0xff]) },
        {
          id: "headers",
          headers: { __proto__x: "p", constructor: "c", "": "no name", many: ["1", "2"], large },
        },
        { headers: { "message-id": ["twice", "different"] } },
        { headers: { "message-id": Buffer.from([0xff]) } },
        { id: "last", key: "ключ" },
      ]);
      const driven = await drive(t, make());
      const received = (await driven.take(8)).map((delivery) => delivery.received);
      const messages = received.filter((one): one is Message => !isRejected(one));
      assert.deepEqual(
        messages.map(({ id, key, bytes }) => [
          id,
          key,
          bytes === null ? null : Buffer.from(bytes).toString("latin1"),
        ]),
        [
          ["tombstone", "k", null],
          ["no key", undefined, "v"],
          ["empty", "", ""],
          ["bytes", "base64://4=", "\u0000\u00ff"],
          ["headers", undefined, "headers"],
          ["last", "ключ", "last"],
        ],
      );
      const { headers } = messages[4]!;
      assert.deepEqual(
        [headers["constructor"], headers["__proto__x"], headers["large"]?.length],
        ["c", "p", 500_000],
      );
      assert.ok(received.slice(5, 7).every(isRejected), "an id that cannot be told is no id");
      driven.ackAll();
      await assertCommitted(at, 8);
    });
  }
});

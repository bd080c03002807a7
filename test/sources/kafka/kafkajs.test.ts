import assert from "node:assert/strict";
import test from "node:test";
import { Kafka, logLevel, type ConsumerConfig } from "kafkajs";
import { InboxError } from "../../../src/errors.ts";
import { kafka, kafkajs, type KafkajsKafka } from "../../../src/sources/kafka/kafka.ts";
import { assertCommitted, drive, eventually, identity, idOf, testTopic } from "./support.ts";

// What is this client's own; what all clients must do is in the files beside.

test("what the source sets itself, and what is no class or no configuration, is refused", () => {
  const config = { brokers: ["127.0.0.1:9092"] };
  assert.throws(() => kafkajs(new Kafka(config) as never, config), /Kafka must be the class/);
  assert.throws(() => kafkajs(Kafka, undefined as never), /config must be an object/);
  assert.throws(() => kafkajs(Kafka, config, { consumer: { groupId: "g" } }), /groupId is set by the source/);
  assert.throws(
    () => kafkajs(Kafka, config, { consumer: { heartbeatInterval: 0 } }),
    /heartbeatInterval must be a whole number/,
  );
  const client = kafkajs(Kafka, config, { consumer: { rebalanceTimeout: 7_000 } });
  assert.equal(client.rebalanceTimeoutMs, 7_000);
});

type Listener = (event: { readonly payload: object }) => void;

/** kafkajs itself, but for a way to have its consumer say that it crashed. */
function crashing(): { readonly Kafka: KafkajsKafka; crash(payload: object): void } {
  let listeners: Listener[] = [];
  class Crashing extends Kafka {
    override consumer(config: ConsumerConfig): ReturnType<Kafka["consumer"]> {
      const consumer = super.consumer(config);
      const on = consumer.on.bind(consumer) as (event: string, listener: Listener) => unknown;
      return {
        ...consumer,
        on: ((event: string, listener: Listener) => {
          if (event === "consumer.crash") listeners = [...listeners, listener];
          return on(event, listener);
        }) as never,
      };
    }
  }
  return { Kafka: Crashing, crash: (payload) => listeners.forEach((listener) => listener({ payload })) };
}

test("a crash that the client does not mend ends the source with its error", async (t) => {
  const at = await testTopic(t);
  if (at === undefined) return;
  const { Kafka: Crashing, crash } = crashing();
  const client = kafkajs(Crashing, { brokers: at.brokers, logLevel: logLevel.NOTHING });
  const driven = await drive(t, kafka({ client, topics: [at.topic], groupId: at.groupId, identity }));
  crash({ error: new Error("Snappy is not there"), restart: false });
  const error = await driven.ended;
  assert.ok(error instanceof InboxError && error.code === "source-failed", String(error));
  assert.match(error.message, /gave up: Snappy is not there/);
});

test("ten restarts without a record between, though a broker answers, end the source", async (t) => {
  const at = await testTopic(t);
  if (at === undefined) return;
  const { Kafka: Crashing, crash } = crashing();
  const client = kafkajs(Crashing, { brokers: at.brokers, logLevel: logLevel.NOTHING });
  const driven = await drive(t, kafka({ client, topics: [at.topic], groupId: at.groupId, identity }));
  for (let i = 0; i < 9; i++) crash({ error: new Error("again"), restart: true });
  await driven.until("a warning", () => driven.warnings.some((text) => /starts again: again/.test(text)));
  crash({ error: new Error("the last"), restart: true });
  assert.match(String(await driven.ended), /gave up/);
});

test("a group without committed offsets begins with what comes after, where that is asked for", async (t) => {
  const at = await testTopic(t);
  if (at === undefined) return;
  await at.publish([{ id: "before" }]);
  const config = { brokers: at.brokers, logLevel: logLevel.NOTHING };
  const client = kafkajs(Kafka, config, { fromBeginning: false });
  const source = kafka({ client, topics: [at.topic], groupId: at.groupId, identity, commitIntervalMs: 20 });
  const driven = await drive(t, source);
  driven.ackAll();
  // It has begun when it knows where.
  await eventually(
    () => source.progress().partitions[0]?.settledTo,
    (settledTo) => settledTo !== undefined,
  );
  await at.publish([{ id: "after" }]);
  assert.deepEqual((await driven.take(1)).map(idOf), ["after"]);
  await assertCommitted(at, 2);
});

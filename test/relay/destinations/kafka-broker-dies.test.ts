import assert from "node:assert/strict";
import test from "node:test";
import { kafkaDestination } from "../../../src/relay/destinations/kafka/kafka.ts";
import { isRejected } from "../../../src/message/message.ts";
import { kafka } from "../../../src/sources/kafka/kafka.ts";
import { ownService } from "../../services/service.ts";
import { kafkajsClient } from "../../sources/kafka/kafkajs-client.ts";
import { drive, topicAt } from "../../sources/kafka/support.ts";
import { testOutbox } from "../../outbox/support.ts";
import { effect, longPatienceMs, startRelay, until } from "../support.ts";
import { producers } from "./kafka-clients.ts";

test("a broker that dies and comes back has everything, each key in its order, and nothing counts against an effect", async (t) => {
  const broker = await ownService(t, "kafka");
  if (broker === undefined) return;
  const at = await topicAt(t, broker.facts.brokers, { numPartitions: 2 });
  const place = await testOutbox(t);
  const destinations: Record<string, ReturnType<typeof kafkaDestination> & { maxAttempts: number }> = {};
  for (const name of ["kafkajs", "confluent"]) {
    const producer = await producers[name]!(
      t,
      at.brokers,
      name === "confluent" ? { "message.timeout.ms": 5_000 } : {},
    );
    if (producer === undefined) return;
    destinations[name] = {
      ...kafkaDestination({ producer, topic: at.topic, maxBatch: 20, retryDelayMs: 20 }),
      maxAttempts: 1,
    };
  }
  const names = Object.keys(destinations);
  const relay = await startRelay(t, place, destinations);
  const total = 300;
  const commit = (from: number, to: number): Promise<unknown> =>
    place.commit((tx) =>
      place.outbox.sendAll(
        tx,
        names.flatMap((destination) =>
          Array.from({ length: to - from }, (_, n) =>
            effect(`${destination} ${from + n}`, { destination, key: `${destination}-${(from + n) % 7}` }),
          ),
        ),
      ),
    );
  await commit(0, 200);
  await until(place.attempts, (attempts) => attempts.length > 40);
  await broker.kill();
  await commit(200, total);
  await until(() => names.every((name) => relay.health()[name]?.failed !== 0));
  await broker.start();
  await until(place.waiting, (waiting) => waiting.length === 0, longPatienceMs);
  const { rows } = await place.pool.query<{ n: number }>(
    "select count(*)::int as n from outbox_attempt where outcome = 'sent'",
  );
  assert.equal(rows[0]?.n, total * 2);
  const driven = await drive(
    t,
    kafka({
      client: await kafkajsClient(t, { brokers: at.brokers }),
      ...{ topics: [at.topic], groupId: at.groupId, identity: "cloudevents" },
    }),
  );
  const firsts = new Map<string, string[]>();
  await driven.until("all ids are there", () => {
    const seen = new Set(driven.delivered.map(({ received }) => (isRejected(received) ? "" : received.id)));
    return seen.size >= total * 2;
  });
  for (const { received } of driven.delivered) {
    assert.ok(!isRejected(received));
    const list = firsts.get(received.key!) ?? [];
    if (!list.includes(received.id)) list.push(received.id);
    firsts.set(received.key!, list);
  }
  assert.equal(firsts.size, 14);
  for (const list of firsts.values()) {
    const numbers = list.map((id) => Number(id.split(" ")[1]));
    assert.deepEqual(
      numbers,
      numbers.toSorted((a, b) => a - b),
    );
  }
});

import assert from "node:assert/strict";
import { join } from "node:path";
import test from "node:test";
import { createOutbox } from "../../../src/outbox/outbox.ts";
import { postgres } from "../../../src/store/postgres/postgres.ts";
import { exampleDatabase, examplesOf, runExample } from "../../support/run-example.ts";
import { inTransaction } from "../../outbox/support.ts";
import { testStream } from "../../sources/nats/support.ts";
import { testQueue } from "../../sources/rabbitmq/support.ts";
import { service } from "../../services/service.ts";

const [example = ""] = examplesOf("docs/destinations.md");

// Behind the example: waits until nothing is to be sent, then stops as SIGTERM would.
const untilSent = `
  for (;;) {
    const { rows } = await pool.query("select 1 from outbox");
    if (rows.length === 0) break;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  await relay.stop();
  const health = relay.health();
  console.log(health.mails!.sent, health.orders!.sent);
  await nats.close();
  await pool.end();`;

test("the relay of docs/destinations.md sends what was asked for to RabbitMQ and NATS", async (t) => {
  const queue = await testQueue(t);
  const stream = queue && (await testStream(t));
  if (queue === undefined || stream === undefined) return;
  const nats = (await service(t, "nats"))!;
  const database = await exampleDatabase(t);
  const { pool, schema } = database;
  const outbox = createOutbox({ store: postgres(pool, { schema }), producer: "shop" });
  await inTransaction(pool, (client) =>
    outbox.sendAll(client, [
      { id: "mail/1", destination: "mails", json: { order: 1 } },
      { id: "order/1", destination: "orders", json: { order: 1 } },
    ]),
  );
  const relay = JSON.stringify(join(import.meta.dirname, "../../../src/relay/relay.ts"));
  const env = {
    ...{ AMQP_URL: queue.url, QUEUE: queue.queue, NATS_URL: nats.url, SUBJECT: `${stream.stream}.new` },
    KAFKA_BROKERS: "127.0.0.1:1",
  };
  const code = example.replaceAll('"transactional-inbox/relay"', relay) + untilSent;
  assert.equal(await runExample(t, database, "destinations", code, env), "1 1\n");
  const got = await queue.admin.get(queue.queue, { noAck: true });
  assert.ok(got !== false);
  assert.equal(got.properties.messageId, "mail/1");
  assert.equal(await stream.held(), 1);
});

import assert from "node:assert/strict";
import test from "node:test";
import { speaksKafka } from "./kafka-address.ts";
import { isFree } from "./ports.ts";
import { ownService, service } from "./service.ts";
import { speaksAmqp } from "./rabbitmq.ts";
import { speaksNats } from "./nats.ts";
import { speaksSqs } from "./sqs-address.ts";

test("RabbitMQ answers at the address that tests get", async (t) => {
  const facts = await service(t, "rabbitmq");
  if (facts !== undefined) await speaksAmqp(facts.url);
});
test("NATS answers at the address that tests get, with JetStream", async (t) => {
  const facts = await service(t, "nats");
  if (facts !== undefined) await speaksNats(facts.host, facts.port);
});
test("SQS answers at the address that tests get", async (t) => {
  const facts = await service(t, "sqs");
  if (facts !== undefined) await speaksSqs(facts);
});

test("Kafka answers at the address that tests get", async (t) => {
  const facts = await service(t, "kafka");
  if (facts !== undefined) await speaksKafka(facts.brokers);
});

test("three Kafka nodes answer as one cluster", async (t) => {
  const facts = await service(t, "kafka-cluster");
  if (facts === undefined) return;
  assert.equal(facts.brokers.length, 3);
  await speaksKafka(facts.brokers);
});

for (const name of ["kafka", "rabbitmq", "nats", "sqs"] as const) {
  test(`${name} of a test's own comes back at its address after it was killed, and after it was stopped`, async (t) => {
    const own = await ownService(t, name);
    if (own === undefined) return;
    const port = "port" in own.facts ? own.facts.port : Number(own.facts.brokers[0]!.split(":")[1]);
    await own.kill();
    // The system may still be ending connections of the dead process on its port.
    for (const until = performance.now() + 10_000; !(await isFree(port));) {
      assert.ok(performance.now() < until, `port ${port} is still taken`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    await own.start();
    await own.restart();
    assert.equal(await isFree(port), false);
  });
}

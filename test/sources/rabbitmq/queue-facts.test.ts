import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import test from "node:test";
import { askManagement } from "../../../src/sources/rabbitmq/management.ts";
import { queueWarnings, type QueueFacts } from "../../../src/sources/rabbitmq/queue-facts.ts";
import { service } from "../../services/service.ts";
import { onTestEnd } from "../../support/cleanup.ts";
import { requireOrSkip } from "../../support/require-or-skip.ts";
import { clients, drive, queueAt } from "./support.ts";

const quorum = { type: "quorum" } as const;
const table: readonly (readonly [string, QueueFacts, number, readonly RegExp[]])[] = [
  ["nothing is known", {}, 30_000, [/Nobody could check/]],
  ["a classic queue", { type: "classic" }, 30_000, []],
  ["a quorum queue without a limit", { ...quorum, version: "3.13.7" }, 30_000, []],
  ["a quorum queue of RabbitMQ 4", { ...quorum, version: "4.1.0" }, 30_000, [/DROP.*limit of 20/]],
  ["one whose limit is lifted", { ...quorum, version: "4.1.0", deliveryLimit: "unlimited" }, 30_000, []],
  ["one with a negative limit", { ...quorum, version: "4.1.0", deliveryLimit: -1 }, 30_000, []],
  [
    "a limit and a dead-letter exchange",
    { ...quorum, deliveryLimit: 5, deadLetterExchange: "dlx" },
    30_000,
    [],
  ],
  [
    "a limit and none",
    { ...quorum, deliveryLimit: 5, deadLetterExchange: "none" },
    30_000,
    [/DROP.*limit of 5/],
  ],
  ["a handler as long as the timeout", { type: "classic" }, 1_800_000, [/1800000 ms.*store-first/]],
  [
    "a shorter timeout",
    { type: "classic", acknowledgementTimeoutMs: 20_000 },
    30_000,
    [/30000 ms, but after 20000 ms/],
  ],
];

for (const [what, facts, handlerTimeoutMs, expected] of table) {
  test(`warns where the broker would drop or take back, and only there: ${what}`, () => {
    const warnings = queueWarnings(facts, handlerTimeoutMs);
    assert.equal(warnings.length, expected.length, warnings.join("\n"));
    for (const [i, pattern] of expected.entries()) assert.match(warnings[i]!, pattern);
  });
}

test("the management API of a real broker tells the queue's type, limit and dead-letter exchange", async (t) => {
  const facts = await service(t, "rabbitmq");
  if (facts === undefined) return;
  if (!requireOrSkip(t, facts.management !== undefined, "this broker has no management API")) return;
  const management = { url: facts.management! };
  const limited = await queueAt(t, facts, { "x-queue-type": "quorum", "x-delivery-limit": 3 });
  const told = await askManagement(management, limited.queue);
  assert.match(told.version!, /^\d+\.\d+/);
  assert.deepEqual(
    { ...told, version: undefined },
    {
      ...{ type: "quorum", deliveryLimit: 3, deadLetterExchange: "none" },
      ...{ acknowledgementTimeoutMs: undefined, version: undefined },
    },
  );
  const kept = await queueAt(t, facts, {
    ...{ "x-queue-type": "quorum", "x-delivery-limit": 3 },
    "x-dead-letter-exchange": "dlx",
  });
  assert.equal((await askManagement(management, kept.queue)).deadLetterExchange, "dlx");

  const warned = await drive(t, {
    ...{ client: clients.amqplib(facts.url), queue: limited.queue, management, queueFacts: {} },
  });
  assert.match(warned.warnings.join("\n"), /DROP messages.*limit of 3/);
  const quiet = await drive(t, {
    ...{ client: clients.amqplib(facts.url), queue: kept.queue, management, queueFacts: {} },
  });
  assert.deepEqual(quiet.warnings, []);
});

test("a stream is refused: nothing is settled there", async (t) => {
  const facts = await service(t, "rabbitmq");
  if (facts === undefined) return;
  const stream = await queueAt(t, facts, { "x-queue-type": "stream" });
  const client = clients.amqplib(facts.url);
  await assert.rejects(drive(t, { client, queue: stream.queue, queueFacts: { type: "stream" } }), {
    code: "source-failed",
    message: /is a stream/,
  });
});

test("a management API that does not answer, or says no, is a warning without credentials, and nothing more", async (t) => {
  const facts = await service(t, "rabbitmq");
  if (facts === undefined) return;
  const server = createServer((_, response) => response.writeHead(401).end("no"));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestEnd(t, () => void server.close());
  const { port } = server.address() as AddressInfo;
  const { queue } = await queueAt(t, facts);
  const management = { url: `http://127.0.0.1:${port}`, username: "ops", password: "s3cr3t-w0rd" };
  const driven = await drive(t, { client: clients.amqplib(facts.url), queue, management, queueFacts: {} });
  assert.match(driven.warnings.join("\n"), /management API could not be asked.*answered 401/);
  assert.match(driven.warnings.join("\n"), /Nobody could check/);
  assert.doesNotMatch(driven.warnings.join("\n"), /s3cr3t/);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { CreateQueueCommand } from "@aws-sdk/client-sqs";
import { checkKept } from "../../src/inbox/check-kept.ts";
import { kafkaFacts } from "../../src/retention/retention.ts";
import type { Kept } from "../../src/sources/source.ts";
import { sqs } from "../../src/sources/sqs/sqs.ts";
import { telemetry } from "../../src/telemetry/channels.ts";
import { listSource } from "../pending/support.ts";
import { sqsServer } from "../retention/sqs-server.ts";
import type { Scope } from "../support/cleanup.ts";
import { message, recordEffect, testInbox } from "./support.ts";

const day = 86_400_000;

const warnings = (t: Scope & { after(done: () => void): void }, of: string): string[] => {
  const texts: string[] = [];
  const hear = (event: unknown): void => {
    const { message: text } = event as { message: string };
    if (text.includes(of)) texts.push(text);
  };
  telemetry.warning.subscribe(hear);
  t.after(() => telemetry.warning.unsubscribe(hear));
  return texts;
};

test("what brokers keep is compared with the window", () => {
  const said = (windowMs: number | undefined, kept: readonly Kept[]): string => {
    let text = "";
    checkKept(kept, { windowMs, strict: false, warn: (warning) => (text = warning) });
    return text;
  };
  const week = { name: "sqs:orders", retentionMs: 7 * day };
  const dead = { name: "sqs:orders-dead", retentionMs: 14 * day };
  assert.equal(said(undefined, [{ name: "kafka:log", retentionMs: Infinity }]), "");
  assert.equal(said(7 * day, [week]), "");
  assert.match(said(7 * day - 1, [week]), /kept for 7 days, but sqs:orders keeps messages for 7 days/);
  assert.match(
    said(day, [{ name: "kafka:log", retentionMs: Infinity }]),
    /kafka:log keeps messages for ever/,
  );
  assert.match(
    said(10 * day, [{ ...week, deadLetter: dead }]),
    /dead letters sqs:orders-dead are kept for 14 days/,
  );
  assert.match(said(90_000, [week]), /kept for 1\.5 minutes/);
});

test("a run warns of it and goes on, or with strict begins nothing", async (t) => {
  const { inboxWith, effects } = await testInbox(t);
  const told = warnings(t, "kafka:payments");
  const inbox = inboxWith({ windowMs: day });
  const kept = async () => kafkaFacts("payments", { "retention.ms": String(7 * day), "segment.ms": "0" });
  const strict = inbox.run(listSource([message("m1")]), recordEffect, { kept, windowCheck: "strict" });
  await assert.rejects(strict.finished, { code: "window-too-short" });
  assert.deepEqual(await effects(), {});
  await inbox.run(listSource([message("m1")]), recordEffect, { kept }).finished;
  assert.deepEqual(await effects(), { m1: 1 });
  assert.equal(told.length, 1);
  assert.match(told[0]!, /Identities are kept for 1 day, but kafka:payments keeps messages for 7 days/);
  // Without a window nothing is asked.
  const asks = async (): Promise<never> => assert.fail("asked");
  await inboxWith({ consumer: "shipping" }).run(listSource([message("m1")]), recordEffect, { kept: asks })
    .finished;
  assert.throws(() => inbox.run(listSource([]), recordEffect, { windowCheck: "loud" as never }), {
    code: "invalid-option",
  });
});

test("SQS tells by itself what its queue keeps, and nothing is received where that is refused", async (t) => {
  const { inboxWith } = await testInbox(t);
  const { client } = await sqsServer(t);
  const { QueueUrl } = await client.send(
    new CreateQueueCommand({ QueueName: "kept", Attributes: { MessageRetentionPeriod: String(4 * 86_400) } }),
  );
  const source = () => sqs({ client, queueUrl: QueueUrl!, producer: "shop" } as Parameters<typeof sqs>[0]);
  const refused = inboxWith({ windowMs: day }).run(source(), recordEffect, { windowCheck: "strict" });
  await assert.rejects(refused.finished, (error: Error) => {
    assert.match(String(error.message), /sqs:kept keeps messages for 4 days/);
    return true;
  });
  const run = inboxWith({ windowMs: 5 * day }).run(source(), recordEffect, { windowCheck: "strict" });
  await run.health();
  await run.stop();
});

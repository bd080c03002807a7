import assert from "node:assert/strict";
import test from "node:test";
import { errorText } from "../../../src/sources/rabbitmq/error-text.ts";
import { rabbitmq } from "../../../src/sources/rabbitmq/rabbitmq.ts";

const client = (): never => {
  throw new Error("not connected in this test");
};

const wrong: readonly (readonly [object, RegExp])[] = [
  [{ client: undefined }, /client cannot be used.*Connection of rabbitmq-client/],
  [
    { client: { createChannel: () => undefined } },
    /amqplib does not connect again.*\(\) => amqplib\.connect/,
  ],
  [{ queue: "" }, /queue must be a name/],
  [{ queue: "x".repeat(256) }, /queue must be a name/],
  [{ key: "header" }, /key must be/],
  [{ key: { header: "" } }, /key must be/],
  [{ prefetch: 0 }, /prefetch must be a whole number from 1 to 65535; got 0/],
  [{ prefetch: 65_536 }, /prefetch/],
  [{ maxHeld: -1 }, /maxHeld/],
  [{ queueFacts: { acknowledgementTimeoutMs: 0 } }, /queueFacts\.acknowledgementTimeoutMs/],
  [
    { management: { url: "http://user:pass@broker:15672" } },
    /management\.url must be .* without credentials/,
  ],
  [{ management: { url: "broker" } }, /management\.url/],
  [{ identity: "nonsense" }, /no format "nonsense"/],
];

test("wrong options fail where the source is made, naming field, rule and value", () => {
  for (const [given, message] of wrong) {
    assert.throws(() => rabbitmq({ client, queue: "q", ...given }), {
      ...{ code: "invalid-option", message },
    });
  }
});

test("no error shows a password, and none is longer than a few lines or more than one", () => {
  const error = new Error("connect to amqp://app:s3cr3t@broker/vhost failed\nand\u001b[31m more", {
    cause: new Error("amqps://app:pa%40ss@b"),
  });
  const text = errorText(error);
  assert.doesNotMatch(text, /s3cr3t|pa%40ss|\n|\u001b/);
  assert.match(text, /amqp:\/\/\*\*\*@broker/);
  assert.ok(errorText("x".repeat(10_000)).length < 600);
  for (const value of [undefined, null, 7, {}, new AggregateError([], "")])
    assert.ok(errorText(value) !== "");
});

test("a source can be stopped and closed that was never started", async () => {
  const source = rabbitmq({ client, queue: "q" });
  assert.equal(source.name, "rabbitmq:q");
  await source.stop();
  await source.close();
  await source.close();
});

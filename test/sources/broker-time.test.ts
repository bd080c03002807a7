import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { sentAt } from "../../src/message/sent-at.ts";
import { recordTime } from "../../src/sources/kafka/record-time.ts";
import { sentTimestamp } from "../../src/sources/sqs/raw-message.ts";

test("the earlier of the producer's and the broker's time counts, and nothing that is no time", () => {
  for (const [time, brokerTime, expected] of [
    [undefined, undefined, undefined],
    [new Date(5), undefined, 5],
    [undefined, 7, 7],
    [new Date(5), 7, 5],
    [new Date(9), 7, 7],
    [new Date(Number.NaN), 7, 7],
    [new Date(Number.NaN), undefined, undefined],
    [undefined, Number.NaN, undefined],
    [undefined, Number.POSITIVE_INFINITY, undefined],
    [new Date(-8.64e15), undefined, 0],
    [undefined, 7.9, 7],
  ] as const) {
    assert.equal(sentAt(time, brokerTime), expected, `${String(time)} ${brokerTime}`);
  }
});

test("any date and any number give whole milliseconds that a database takes, or nothing", () => {
  fc.assert(
    fc.property(fc.option(fc.date({ noInvalidDate: false })), fc.option(fc.double()), (time, brokerTime) => {
      const at = sentAt(time ?? undefined, brokerTime ?? undefined);
      assert.ok(at === undefined || (Number.isFinite(at) && Number.isInteger(at) && at >= 0));
    }),
  );
});

test("times of Kafka's clients are read as each has them, and -1 is none", () => {
  for (const [given, expected] of [
    [1_700_000_000_000, 1_700_000_000_000],
    ["1700000000000", 1_700_000_000_000],
    [1_700_000_000_000n, 1_700_000_000_000],
    [-1, undefined],
    ["-1", undefined],
    ["", undefined],
    ["soon", undefined],
    [undefined, undefined],
    [null, undefined],
    [{}, undefined],
    [2n ** 63n, undefined],
  ] as const) {
    assert.equal(recordTime(given), expected);
  }
});

test("SQS says when it took a message in, if it was asked", () => {
  assert.equal(sentTimestamp({ Attributes: { SentTimestamp: "1700000000000" } }), 1_700_000_000_000);
  for (const Attributes of [undefined, {}, { SentTimestamp: "" }, { SentTimestamp: "x" }])
    assert.equal(sentTimestamp({ Attributes }), undefined);
});

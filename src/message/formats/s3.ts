import { itemSpans } from "../json-spans.ts";
import { readJson } from "../json-document.ts";
import type { JsonDocument } from "../json-document.ts";
import { maxIdBytes } from "../limits.ts";
import { parseRfc3339 } from "../rfc3339.ts";
import { showValue } from "../show-value.ts";
import { fault, ignored, partsOf, readAs, refused } from "./format.ts";
import type { Format, RawDelivery, ReadItem, Why } from "./format.ts";
import { joinName, joinNameWithin } from "./join-name.ts";
import { snsNotification } from "./sns-envelope.ts";

const why: Why = {
  identity:
    "the event's name, sequencer, version and object key, in the bucket's name: the record has no id of its own",
  payload: "the record, as it stands in the notification",
  key: "the bucket and the decoded object key",
  time: "eventTime",
};

/**
 * S3 event notifications, straight into a queue or through SNS: one message a record, as one notification may hold
 * several and S3 may send one twice. Object keys are decoded. The test event of a new configuration is ignored.
 */
export const s3 = (): Format => ({
  name: "s3",
  fingerprint: { by: "json" },
  read(delivery) {
    const outer = readJson(delivery.body);
    if (typeof outer === "string") return malformed(delivery, outer);
    const sns = snsNotification(outer);
    const document = sns === undefined ? outer : readJson(sns.message);
    if (typeof document === "string") return malformed(delivery, document);
    if (document.text(["Event"]) === "s3:TestEvent")
      return ignored("the test event that S3 sends for a new configuration");
    const records = document.raw(["Records"]);
    const spans = records === undefined ? undefined : itemSpans(records);
    if (records === undefined || spans?.ok !== true) {
      return refused(
        delivery,
        fault("no-identity", "The message is no S3 notification: it has no list of Records."),
      );
    }
    if (spans.spans.length === 0) return ignored("an S3 notification without records");
    const own = partsOf(delivery);
    return spans.spans.flatMap(({ start, end }) => readRecord(own, records.slice(start, end)));
  },
});

const malformed = (delivery: RawDelivery, reason: string): readonly ReadItem[] =>
  refused(delivery, fault("malformed", `The S3 notification cannot be read: ${reason}.`));

function readRecord(delivery: RawDelivery, text: string): readonly ReadItem[] {
  const record = readJson(text);
  if (typeof record === "string") return malformed(delivery, record);
  const bucket = record.text(["s3", "bucket", "arn"]) ?? record.text(["s3", "bucket", "name"]);
  const encodedKey = record.text(["s3", "object", "key"]);
  const eventName = record.text(["eventName"]);
  const order = sequencer(record);
  if (bucket === undefined || encodedKey === undefined || eventName === undefined || order === undefined) {
    const text =
      "A record of the S3 notification has no bucket, object key, eventName, or no sequencer and no request id.";
    return refused(delivery, fault("no-identity", text), { producer: bucket });
  }
  let objectKey: string;
  try {
    objectKey = decodeURIComponent(encodedKey.replaceAll("+", " "));
  } catch {
    return malformed(delivery, `the object key ${showValue(encodedKey)} is not well encoded`);
  }
  const version = record.text(["s3", "object", "versionId"]) ?? "";
  const time = record.text(["eventTime"]);
  return [
    readAs(
      delivery,
      {
        producer: bucket,
        id: joinNameWithin([eventName, order, version, objectKey], maxIdBytes),
        payload: text,
        key: joinName([bucket, objectKey]),
        type: eventName,
        time: time === undefined ? undefined : parseRfc3339(time),
      },
      why,
    ),
  ];
}

/** What tells two events of one kind on one object apart; events that carry no sequencer name the request. */
const sequencer = (record: JsonDocument): string | undefined =>
  record.text(["s3", "object", "sequencer"]) ?? record.text(["responseElements", "x-amz-request-id"]);

import { parsePointer } from "../json-pointer.ts";
import { readJson } from "../json-document.ts";
import { parseRfc3339 } from "../rfc3339.ts";
import { createAttributeNames, readBinaryCloudEvent } from "./cloudevents-binary.ts";
import { hasNoIdentity } from "./first-of.ts";
import { fault, isFault, readAs, refused } from "./format.ts";
import type { Format, RawDelivery, Why } from "./format.ts";
import { headerTexts, keyText, setHeader } from "./header-value.ts";
import { jsonField } from "./json-field.ts";
import { receiveProducer } from "./producer.ts";
import type { ProducerOption } from "./producer.ts";
import { snsNotification } from "./sns-envelope.ts";
import type { SnsNotification } from "./sns-envelope.ts";
import { sqsGroup, sqsMessageId } from "./sqs-fields.ts";

export interface SqsOptions extends ProducerOption {
  /**
   * The JSON pointer of the business event's id in the message, such as `/eventId`: the only id that survives a producer
   * that publishes twice. Default: the id of a CloudEvent in binary mode, else the SNS MessageId, else the queue's.
   */
  readonly idPath?: string | undefined;
}

const whyOf = (identity: string): Why => ({
  identity,
  payload: "the message itself; of an SNS notification its Message, unescaped",
  key: "the FIFO group, if there is one",
  time: "the SNS Timestamp, if there is one",
});
const fromSns = whyOf(
  "the SNS MessageId in the topic's name: the same when SNS hands over again, another when the producer publishes again",
);
const fromQueue = whyOf(
  "the SQS MessageId, transport-only: it survives redelivery by this queue and nothing else, no re-publish and no redrive by copy",
);

/** Messages of an SQS queue, sent to it directly or through SNS, with its envelope or raw. */
export function sqs(options: SqsOptions = {}): Format {
  const { idPath } = options;
  const tokens = idPath === undefined ? undefined : parsePointer(idPath, "idPath");
  const names = createAttributeNames();
  const fromPath = whyOf(`the field ${idPath} of the message, which the producer chose`);
  return {
    name: "sqs",
    fingerprint: { by: "bytes" },
    read(delivery) {
      const document = readJson(delivery.body);
      const sns = typeof document === "string" ? undefined : snsNotification(document);
      const payload = sns?.message ?? delivery.body;
      const producer = options.producer ?? sns?.topicArn ?? receiveProducer(options, delivery);
      if (tokens === undefined) {
        // What was sent as a CloudEvent has an id that its producer chose, which every copy of it keeps.
        const event = sns === undefined ? readBinaryCloudEvent(delivery, names) : undefined;
        if (event !== undefined && !event.every(hasNoIdentity)) return event;
        const shared = { ...common(delivery, sns), producer, payload };
        if (sns !== undefined) return [readAs(delivery, { ...shared, id: sns.messageId }, fromSns)];
        const headers = headerTexts(delivery.headers);
        setHeader(headers, "inbox-id-rule", "transport-only");
        return [readAs(delivery, { ...shared, id: sqsMessageId(delivery), headers }, fromQueue)];
      }
      const inner = sns === undefined ? document : readJson(sns.message);
      if (typeof inner === "string") {
        return refused(delivery, fault("malformed", `The message has no ${idPath}: ${inner}.`), { producer });
      }
      const id = jsonField(inner, tokens, idPath!);
      if (isFault(id)) return refused(delivery, id, { producer });
      return [readAs(delivery, { ...common(delivery, sns), producer, id, payload }, fromPath)];
    },
  };
}

const common = (
  delivery: RawDelivery,
  sns: SnsNotification | undefined,
): { key?: string | undefined; time?: Date | undefined } => ({
  key: keyText(sqsGroup(delivery)),
  time: sns?.timestamp === undefined ? undefined : parseRfc3339(sns.timestamp),
});

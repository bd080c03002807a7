import type { JsonDocument } from "../json-document.ts";

/** What an SNS notification carries when raw delivery is off. */
export interface SnsNotification {
  readonly messageId: string;
  readonly topicArn: string;
  readonly message: string;
  readonly timestamp: string | undefined;
  readonly subject: string | undefined;
}

/** The SNS notification that a body is, or `undefined`: then it came raw, or not by SNS. */
export function snsNotification(document: JsonDocument): SnsNotification | undefined {
  if (document.text(["Type"]) !== "Notification") return undefined;
  const messageId = document.text(["MessageId"]);
  const topicArn = document.text(["TopicArn"]);
  const message = document.text(["Message"]);
  if (messageId === undefined || topicArn === undefined || message === undefined) return undefined;
  return {
    messageId,
    topicArn,
    message,
    timestamp: document.text(["Timestamp"]),
    subject: document.text(["Subject"]),
  };
}

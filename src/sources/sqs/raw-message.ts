import { receiveMessage } from "../../message/create-message.ts";
import type { RawDelivery } from "../../message/formats/format.ts";
import { isRejected, type Received } from "../../message/message.ts";
import type { ItemReader } from "../read-items.ts";

/** A message as SQS gives it. */
export interface RawMessage {
  readonly MessageId?: string | undefined;
  readonly ReceiptHandle?: string | undefined;
  readonly Body?: string | undefined;
  readonly Attributes?: Readonly<Record<string, string | undefined>> | undefined;
  readonly MessageAttributes?: Readonly<Record<string, RawAttribute>> | undefined;
}

export interface RawAttribute {
  readonly StringValue?: string | undefined;
  readonly BinaryValue?: Uint8Array | undefined;
}

/** Whether a queue keeps the order of its groups: its name says so, by SQS's own rule. */
export const isFifoName = (queueName: string): boolean => queueName.endsWith(".fifo");

export interface ReadContext {
  readonly queueName: string;
  readonly fifo: boolean;
  readonly tenant: string | undefined;
  readonly items: ItemReader;
}

/** The messages in an SQS message: one, or those of a batch inside it, or none that needs handling. */
export function readRaw(
  raw: RawMessage,
  { queueName, fifo, tenant, items }: ReadContext,
): readonly Received[] {
  // Fair queues use the group of a standard queue for the shares of tenants: there it orders nothing.
  const { MessageGroupId, ...attributes } = raw.Attributes ?? {};
  const group = fifo ? MessageGroupId : undefined;
  const delivery: RawDelivery = {
    body: raw.Body ?? null,
    headers: Object.entries(raw.MessageAttributes ?? {}).map(([name, value]) => [
      name,
      value?.StringValue ?? value?.BinaryValue,
    ]),
    properties: { MessageId: raw.MessageId, Attributes: fifo ? raw.Attributes : attributes },
    key: group,
    channel: queueName,
    tenant,
  };
  const received = items.read(delivery);
  return group === undefined ? received : received.map((one) => withKey(one, group));
}

/** The FIFO group is the key, also where the format found another one: the queue blocks by its group. */
function withKey(received: Received, key: string): Received {
  if (isRejected(received) || received.key === key) return received;
  const { tenant, producer, id, bytes, type, time, headers } = received;
  return receiveMessage({ tenant, producer, id, payload: bytes, key, type, time, headers });
}

/** A hint only: SQS counts deliveries, also those that were never begun. */
export const wasReceivedBefore = ({ Attributes }: RawMessage): boolean =>
  Number(Attributes?.["ApproximateReceiveCount"] ?? 1) > 1;

/** When SQS took it in, in milliseconds since 1970; `undefined` where that was not asked for. A redrive keeps it. */
export function sentTimestamp({ Attributes }: RawMessage): number | undefined {
  const ms = Number(Attributes?.["SentTimestamp"] ?? Number.NaN);
  return Number.isSafeInteger(ms) && ms > 0 ? ms : undefined;
}

import { formatByName, formatNames } from "../../../src/message/formats/formats.ts";
import type { Format, RawDelivery } from "../../../src/message/formats/format.ts";
import { sampleBytes, sampleJson } from "../samples.ts";
import { revive } from "./read.ts";

/** Every format that can be named, the two that need options with theirs. */
export const allFormats: readonly Format[] = formatNames.map((name) =>
  name === "json"
    ? formatByName("json", { idPath: "/id", keyPath: "/key", producer: "p" })
    : name === "header"
      ? formatByName("header", { idHeader: "id", idRule: "uuid", producer: "p" })
      : formatByName(name),
);

const isa = `ISA*00*          *00*          *ZZ*${"SENDER".padEnd(15)}*01*${"RECEIVER".padEnd(15)}*260302*0915*U*00401*000000905*0*P*>~`;

const mime = (): Buffer =>
  Buffer.from(
    `--b1\r\nContent-ID: <soap@x>\r\n\r\n${sampleBytes("15-as4-usermessage.xml").toString()}\r\n--b1\r\nContent-ID: <order-2026-0001@seller.example.test>\r\nContent-Transfer-Encoding: base64\r\n\r\nH4sIAAAAAAAAA/NIzcnJVyjPL8pJAQBWsRdKCwAAAA==\r\n--b1--\r\n`,
  );

/** A valid delivery or two of every form, to be broken by the fuzzer. */
export function corpus(): RawDelivery[] {
  const { deliveries } = sampleJson<{ deliveries: { headers: object; rawBody: string }[] }>(
    "01-cloudevents-structured-http.json",
  );
  const binary = revive(
    sampleJson<{ messages: { headers: object; key: unknown; valueB64: string }[] }>(
      "02-cloudevents-binary-kafka.json",
    ),
  );
  const outbox = revive(
    sampleJson<{ messages: { headers: object; key: unknown; topic: string; valueUtf8: string | null }[] }>(
      "03-debezium-outbox-kafka.json",
    ),
  );
  const queue = sampleJson<{ Messages: { Body: string }[] }>("06-sqs-sns-envelope.json");
  return [
    ...deliveries.map(({ headers, rawBody }) => ({ headers, body: rawBody })),
    ...binary.messages.map(({ headers, key, valueB64 }) => ({
      headers,
      key,
      body: Buffer.from(valueB64, "base64"),
      channel: "t",
    })),
    ...outbox.messages.map(({ headers, key, topic, valueUtf8 }) => ({
      headers,
      key,
      body: valueUtf8,
      channel: topic,
    })),
    ...queue.Messages.map((message) => ({ body: message.Body, properties: message, channel: "q" })),
    {
      body: '{"Records":[{"eventName":"ObjectCreated:Put","s3":{"bucket":{"arn":"arn:b"},"object":{"key":"a+b%20c","sequencer":"1"}}}]}',
    },
    {
      body: '{"id":"1","detail-type":"t","source":"s","account":"1","time":"2026-03-02T08:15:30Z","detail":{"a":1}}',
    },
    {
      body: '{"op":"u","after":{"id":4},"source":{"connector":"postgresql","lsn":24023128,"name":"s"},"ts_ms":1}',
      key: '{"id":4}',
    },
    {
      body: '{"id":"evt_1","object":"event","created":1772439330,"type":"t","data":{"object":{"id":"in_1"}}}',
    },
    {
      body: "{}",
      headers: {
        "webhook-id": "msg_1",
        "x-github-delivery": "d",
        "x-shopify-webhook-id": "w",
        "x-shopify-shop-domain": "s",
      },
      channel: "/h",
    },
    {
      body: "{}",
      properties: { messageId: "m", timestamp: 1, type: "t" },
      headers: { id: "3f2504e0-4f89-11d3-9a0c-0305e82c3301" },
      channel: "q",
    },
    { body: sampleBytes("15-as4-usermessage.xml") },
    { body: sampleBytes("17-as4-xxe-attempt.xml") },
    { body: mime(), headers: { "content-type": 'multipart/related; boundary="b1"; start="<soap@x>"' } },
    { body: mime() },
    { body: sampleBytes("11-edifact-una-release.edi") },
    { body: sampleBytes("13-edifact-multi-interchange.edi") },
    { body: `${isa}GS*PO*S*R*20260302*0915*1*X*004010~ST*850*0001~SE*2*0001~GE*1*1~IEA*1*000000905~` },
  ];
}

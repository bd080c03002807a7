import type { SqsFacts } from "./facts.ts";

/** A server of the tests, which takes any credentials. */
export function sqsAt(host: string, port: number): SqsFacts {
  return {
    host,
    port,
    endpoint: `http://${host}:${port}`,
    region: "us-east-1",
    credentials: { accessKeyId: "test", secretAccessKey: "test" },
  };
}

/** Whether it lists its queues, which no other kind of server does. */
export async function speaksSqs({ endpoint, region, credentials }: SqsFacts): Promise<void> {
  const response = await fetch(endpoint, {
    method: "POST",
    headers: {
      "content-type": "application/x-amz-json-1.0",
      "x-amz-target": "AmazonSQS.ListQueues",
      authorization: `AWS4-HMAC-SHA256 Credential=${credentials.accessKeyId}/20200101/${region}/sqs/aws4_request, SignedHeaders=host, Signature=0`,
    },
    body: "{}",
    signal: AbortSignal.timeout(3_000),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`ListQueues was answered with ${response.status}: ${text.slice(0, 200)}`);
  const answer: unknown = JSON.parse(text);
  if (typeof answer !== "object" || answer === null)
    throw new Error("ListQueues was not answered with an object.");
}

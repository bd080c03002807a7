import { SQSClient } from "@aws-sdk/client-sqs";
import { buildApp } from "fauxqs";
import { onTestEnd, type Scope } from "../support/cleanup.ts";

/** An SQS of the test's own that knows how long a queue keeps messages, which ElasticMQ does not. */
export async function sqsServer(
  t: Scope,
): Promise<{ readonly client: SQSClient; readonly endpoint: string }> {
  const app = buildApp({ logger: false });
  await app.listen({ host: "127.0.0.1", port: 0 });
  onTestEnd(t, () => app.close());
  const address = app.server.address();
  if (address === null || typeof address === "string") throw new Error("it listens on no port");
  const endpoint = `http://127.0.0.1:${address.port}`;
  const credentials = { accessKeyId: "test", secretAccessKey: "test" };
  const client = new SQSClient({ endpoint, region: "us-east-1", credentials, maxAttempts: 1 });
  onTestEnd(t, () => client.destroy());
  return { client, endpoint };
}

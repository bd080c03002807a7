import { Kafka, logLevel, Partitioners, type Admin, type Producer } from "kafkajs";
import { onTestEnd, type Scope } from "../../support/cleanup.ts";

export interface TestKafka {
  readonly client: Kafka;
  readonly admin: Admin;
  /** Sends one request at a time, so that what is sent twice keeps its order. */
  readonly producer: Producer;
}

/** A client that is not the source's, patient with a broker that is coming up; it ends with the test. */
export async function connectKafka(
  t: Scope,
  clientId: string,
  brokers: readonly string[],
  idempotent = false,
): Promise<TestKafka> {
  const client = new Kafka({
    ...{ clientId, brokers: [...brokers], logLevel: logLevel.NOTHING },
    retry: { initialRetryTime: 50, maxRetryTime: 500, retries: 60 },
  });
  const admin = client.admin();
  const producer = client.producer({
    createPartitioner: Partitioners.DefaultPartitioner,
    maxInFlightRequests: 1,
    idempotent,
  });
  onTestEnd(t, async () => {
    await admin.disconnect();
    await producer.disconnect();
  });
  await Promise.all([admin.connect(), producer.connect()]);
  return { client, admin, producer };
}

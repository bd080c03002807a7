import { Kafka, logLevel } from "kafkajs";

/** Whether as many nodes as named answer as one cluster, reachable where they say they are. */
export async function speaksKafka(brokers: readonly string[]): Promise<void> {
  const client = new Kafka({
    clientId: "services",
    brokers: [...brokers],
    logLevel: logLevel.NOTHING,
    connectionTimeout: 2_000,
    requestTimeout: 5_000,
    retry: { retries: 0 },
  });
  const admin = client.admin();
  try {
    await admin.connect();
    const cluster = await admin.describeCluster();
    if (cluster.brokers.length < brokers.length)
      throw new Error(`${cluster.brokers.length} of ${brokers.length} nodes are there.`);
    await admin.listTopics();
  } finally {
    await admin.disconnect().catch(() => undefined);
  }
}

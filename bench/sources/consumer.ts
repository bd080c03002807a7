// One consumer process of the benchmark: works through what waits at the broker as its job says, and tells how long it
// took. In a process of its own, so that its memory and its processor time are the consumer's and nobody else's.
import type { Job, Result } from "./job.ts";

async function measure(job: Job): Promise<Result> {
  if (job.way === "inbox") return (await import("./inbox.ts")).measureInbox(job);
  switch (job.client) {
    case "rabbitmq-client":
      return (await import("./by-hand-rabbitmq-client.ts")).measureRabbitmqClient(job);
    case "amqplib":
      return (await import("./by-hand-amqplib.ts")).measureAmqplib(job);
    case "confluent":
      return (await import("./by-hand-confluent.ts")).measureConfluent(job);
    case "kafkajs":
      return (await import("./by-hand-kafkajs.ts")).measureKafkajs(job);
    case "memory":
      throw new Error("Without a broker there is only the inbox.");
  }
}

const result = await measure(JSON.parse(process.argv[2] ?? "") as Job);
process.send?.(result);
process.disconnect?.();

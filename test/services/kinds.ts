import type { ServiceFacts, ServiceName } from "./facts.ts";
import { kafka, kafkaCluster } from "./kafka.ts";
import { nats } from "./nats.ts";
import { pgbouncer, postgres } from "./postgres.ts";
import { rabbitmq } from "./rabbitmq.ts";
import { sqs } from "./sqs.ts";
import type { Kind } from "./way.ts";

/** Every service the tests know. */
export const kinds: { readonly [Name in ServiceName]: Kind<ServiceFacts[Name]> } = {
  kafka,
  "kafka-cluster": kafkaCluster,
  rabbitmq,
  nats,
  sqs,
  postgres,
  pgbouncer,
};

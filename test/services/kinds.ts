import type { ServiceFacts, ServiceName } from "./facts.ts";
import { nats } from "./nats.ts";
import { rabbitmq } from "./rabbitmq.ts";
import { sqs } from "./sqs.ts";
import type { Kind } from "./way.ts";

/** Every service the tests know. */
export const kinds: { readonly [Name in ServiceName]?: Kind<ServiceFacts[Name]> } = { rabbitmq, nats, sqs };

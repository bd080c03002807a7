// The public face of `transactional-inbox/nats`.
export { nats } from "./source.ts";
export type { NatsProgress, NatsSource } from "./source.ts";
export type { NatsOptions } from "./options.ts";
export type { NatsConsumer, NatsPull, NatsConsumerInfo, NatsJetStream, NatsMessage } from "./client.ts";
export { isPublished } from "./published.ts";
export type { NatsPublishAnswer } from "./published.ts";

// The public face of `transactional-inbox/rabbitmq`.
export { rabbitmq } from "./source.ts";
export type { RabbitmqProgress, RabbitmqSource } from "./source.ts";
export type { RabbitmqOptions } from "./options.ts";
export type { RabbitmqClient } from "./detect-client.ts";
export type {
  RabbitmqClientConnection,
  RabbitmqClientChannel,
  RabbitmqClientMessage,
} from "./rabbitmq-client.ts";
export type { AmqplibChannel, AmqplibConnection, AmqplibMessage } from "./amqplib.ts";
export type { AmqpMessage } from "./client.ts";
export type { Management } from "./management.ts";
export type { QueueFacts } from "./queue-facts.ts";

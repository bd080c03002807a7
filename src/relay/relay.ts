// The public face of transactional-inbox/relay.
export { createRelay } from "./create-relay.ts";
export type { Relay, RelayOptions } from "./create-relay.ts";
export type { DestinationHealth } from "./destination-worker.ts";
export type { DeliverFunction, DeliveryContext, DeliveryOptions, Destination } from "./destination.ts";
export type { Effect } from "./effect.ts";
export { again, refused, sent } from "./answer.ts";
export type { Again, Answer, Refused, Sent } from "./answer.ts";
export { httpDestination } from "./destinations/http/http.ts";
export type { HttpDestinationOptions } from "./destinations/http/http.ts";
export type { HttpAnswer } from "./destinations/http/send-request.ts";
export { inboxDestination } from "./destinations/inbox.ts";
export type { InboxDestinationOptions } from "./destinations/inbox.ts";
export { rabbitmqDestination } from "./destinations/rabbitmq/rabbitmq.ts";
export type { RabbitmqDestinationOptions } from "./destinations/rabbitmq/rabbitmq.ts";
export type { RabbitmqPublishClient } from "./destinations/rabbitmq/detect-client.ts";
export type {
  AmqplibConfirmChannel,
  AmqplibPublishConnection,
  AmqplibReturn,
} from "./destinations/rabbitmq/amqplib.ts";
export type {
  RabbitmqClientConfirmChannel,
  RabbitmqClientPublishConnection,
  RabbitmqClientReturn,
} from "./destinations/rabbitmq/rabbitmq-client.ts";
export { natsDestination } from "./destinations/nats.ts";
export type {
  NatsDestinationOptions,
  NatsHeaders,
  NatsPublishClient,
  NatsPublished,
} from "./destinations/nats.ts";
export { kafkaDestination } from "./destinations/kafka/kafka.ts";
export type { KafkaDestinationOptions } from "./destinations/kafka/kafka.ts";
export { confluentProducer } from "./destinations/kafka/confluent.ts";
export type { ConfluentProducerModule } from "./destinations/kafka/confluent.ts";
export { kafkajsProducer } from "./destinations/kafka/kafkajs.ts";
export type { KafkajsProducerKafka } from "./destinations/kafka/kafkajs.ts";
export type { KafkaProducer, KafkaRecord, SendFailure } from "./destinations/kafka/producer.ts";
export { platformaticProducer } from "./destinations/kafka/platformatic.ts";
export type { PlatformaticProducerClass } from "./destinations/kafka/platformatic.ts";
export { sqsDestination } from "./destinations/sqs/sqs.ts";
export type { SqsDestinationOptions } from "./destinations/sqs/sqs.ts";

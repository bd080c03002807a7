// The public face of `transactional-inbox/sqs`.
import { sourceSettings, type SqsSourceOptions } from "./options.ts";
import { createSqsSource, type SqsSource } from "./sqs-source.ts";

export type { SqsClient } from "./client.ts";
export { sqsLambda } from "./lambda.ts";
export type { SqsLambda, SqsLambdaOptions } from "./lambda.ts";
export type {
  LambdaContext,
  SqsBatchResponse,
  SqsEvent,
  SqsRecord,
  SqsRecordAttribute,
} from "./lambda-event.ts";
export type { SqsSourceOptions } from "./options.ts";
export type { SqsSource } from "./sqs-source.ts";

/**
 * Messages of an SQS queue, standard or FIFO. Throws `invalid-option`. Its `start` rejects with `missing-package` without
 * `@aws-sdk/client-sqs`, and with `source-failed` where the queue is not there or cannot be reached.
 */
export const sqs = (options: SqsSourceOptions): SqsSource =>
  createSqsSource(sourceSettings(options), { now: () => performance.now(), random: Math.random });

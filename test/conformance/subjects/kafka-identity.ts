import { formats } from "../../../src/index.ts";
import { cursor, type KafkaOptions } from "../../../src/sources/kafka/kafka.ts";
import type { KafkaConfig } from "./kafka-place.ts";

/** How records name their messages; `topicIds` for a client that cannot tell them. */
export const identityOf = (
  { namesByPlace, topic }: KafkaConfig,
  topicIds?: "declared",
): KafkaOptions["identity"] => {
  if (namesByPlace !== true) return formats.header({ idHeader: "message-id" });
  return cursor(topicIds === undefined ? {} : { topicIds: { [topic]: "declared" } });
};

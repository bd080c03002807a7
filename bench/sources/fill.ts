import { fillKafka } from "./fill-kafka.ts";
import { fillRabbitmq } from "./fill-rabbitmq.ts";
import type { Load } from "./messages.ts";

/** A queue or topic with messages that wait. */
export interface Filled {
  readonly place: string;
  remove(): Promise<void>;
}

export type BrokerName = "rabbitmq" | "kafka";

/** Publishes the load to a new queue or topic; resolves when the broker has stored all of it. */
export const fill = (broker: BrokerName, address: string, load: Load): Promise<Filled> =>
  broker === "rabbitmq" ? fillRabbitmq(address, load) : fillKafka(address, load);

import { connect } from "amqplib";
import type { Source } from "../../../src/sources/source.ts";
import type { Subject } from "../subject.ts";
import { makeRabbitmqSource, type RabbitmqConfig } from "./rabbitmq-source.ts";

/** A quorum queue with amqplib. What is returned to it goes behind what waits there: it keeps no order. */
export const subject: Subject = {
  name: "rabbitmq (amqplib, quorum queue)",
  module: import.meta.filename,
  order: "never",
  // Consumer processes have no use for what starts brokers.
  open: async (t, needs, suite) => (await import("./rabbitmq-place.ts")).openQueue(t, needs, suite, "quorum"),
};

export const makeSource = (config: RabbitmqConfig): Source =>
  makeRabbitmqSource(config, () => connect(config.url));

import { connect } from "amqplib";
import type { Source } from "../../../src/sources/source.ts";
import type { Subject } from "../subject.ts";
import { makeRabbitmqSource, type RabbitmqConfig } from "./rabbitmq-source.ts";

/** A classic queue with amqplib. The broker keeps no order once a second consumer is there. */
export const subject: Subject = {
  name: "rabbitmq (amqplib, classic queue)",
  module: import.meta.filename,
  order: "one consumer",
  // Consumer processes have no use for what starts brokers.
  open: async (t, needs, suite) =>
    (await import("./rabbitmq-place.ts")).openQueue(t, needs, suite, "classic"),
};

export const makeSource = (config: RabbitmqConfig): Source =>
  makeRabbitmqSource(config, () => connect(config.url));

import { Connection } from "rabbitmq-client";
import type { Source } from "../../../src/sources/source.ts";
import type { Subject } from "../subject.ts";
import { makeRabbitmqSource, type RabbitmqConfig } from "./rabbitmq-source.ts";

/** A classic queue with rabbitmq-client. The broker keeps no order once a second consumer is there. */
export const subject: Subject = {
  name: "rabbitmq (rabbitmq-client, classic queue)",
  module: import.meta.filename,
  order: "one consumer",
  // Consumer processes have no use for what starts brokers.
  open: async (t, needs, suite) =>
    (await import("./rabbitmq-place.ts")).openQueue(t, needs, suite, "classic"),
};

export const makeSource = (config: RabbitmqConfig): Source =>
  makeRabbitmqSource(config, () => new Connection({ url: config.url, retryLow: 50, retryHigh: 1_000 }));

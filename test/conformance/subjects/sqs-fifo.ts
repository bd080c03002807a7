import { formats } from "../../../src/index.ts";
import type { Source } from "../../../src/sources/source.ts";
import type { Subject } from "../subject.ts";
import { makeSqsSource, openQueue, type SqsConfig } from "./sqs-place.ts";

const unsteady =
  "to be made steady: on ElasticMQ a group may stay with a long poll whose connection is gone for longer than the test waits";

/** A FIFO queue: a group's messages in their order, with any number of consumers. */
export const subject: Subject = {
  name: "sqs (FIFO)",
  module: import.meta.filename,
  order: "always",
  // ElasticMQ goes on with the long polls of connections that are gone, up to 20 s: each may take a group away for its visibility timeout.
  patienceMs: 70_000,
  lacks: { "cut-in-handler": unsteady },
  open: (t, needs, suite) => openQueue(t, needs, suite, true),
};

export const makeSource = (config: SqsConfig): Source =>
  makeSqsSource(config, formats.sqs({ idPath: "/id" }));

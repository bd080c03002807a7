import { formats } from "../../../src/index.ts";
import type { Source } from "../../../src/sources/source.ts";
import type { Subject } from "../subject.ts";
import { makeSqsSource, openQueue, type SqsConfig } from "./sqs-place.ts";

/** A standard queue: any order, and a message may come twice. */
export const subject: Subject = {
  name: "sqs (standard)",
  module: import.meta.filename,
  order: "never",
  // As for FIFO: long polls of connections that are gone go on for up to 20 s and take messages with them.
  patienceMs: 70_000,
  open: (t, needs, suite) => openQueue(t, needs, suite, false),
};

export const makeSource = (config: SqsConfig): Source =>
  makeSqsSource(config, formats.json({ idPath: "/id", keyPath: "/key" }));

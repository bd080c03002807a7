import { formats } from "../../../src/index.ts";
import type { Source } from "../../../src/sources/source.ts";
import type { Subject } from "../subject.ts";
import { makeSqsSource, openQueue, type SqsConfig } from "./sqs-place.ts";

/** A standard queue: any order, and a message may come twice. */
export const subject: Subject = {
  name: "sqs (standard)",
  module: import.meta.filename,
  order: "never",
  open: (t, needs, suite) => openQueue(t, needs, suite, false),
};

export const makeSource = (config: SqsConfig): Source =>
  makeSqsSource(config, formats.json({ idPath: "/id", keyPath: "/key" }));

import { resolve } from "node:path";
import { ndjson, type NdjsonOptions } from "../sources/ndjson/ndjson.ts";
import type { CheckpointStore } from "../sources/ndjson/checkpoint.ts";
import type { Source } from "../sources/source.ts";
import { storedBodies, type StoredBodiesOptions } from "./stored-bodies.ts";

/** How a reading of a replay's source stands to others. */
export interface ReplayPlace {
  /** The name under which messages are taken. */
  readonly consumer: string;
  /** Whether an earlier run of the same, from the same source, did not come to its end: this one goes on there. */
  readonly resumes: boolean;
  /** For sources that remember how far they have come. */
  readonly checkpoints: CheckpointStore;
  /** Whether it is only read, for a plan: then nothing of it may be remembered. */
  readonly planning: boolean;
}

/** Where a replay's messages come from. */
export interface ReplaySource {
  /** The same for each run that shall go on with the one before. */
  readonly name: string;
  open(place: ReplayPlace): Source | Promise<Source>;
}

/** Lines of a file, as `ndjson` reads them. A run that follows a killed one goes on where that one was. */
export const replayFile = (
  options: Omit<NdjsonOptions, "from" | "checkpoints"> & { readonly from: string },
): ReplaySource => ({
  name: `ndjson:${resolve(options.from)}`,
  open: ({ checkpoints, planning }) =>
    ndjson({ ...options, checkpoints: planning ? undefined : checkpoints }),
});

/** The bodies that an inbox keeps of a consumer, as `storedBodies` reads them. */
export const replayStored = (options: StoredBodiesOptions): ReplaySource => ({
  name: `stored:${options.consumer}`,
  open: () => storedBodies(options),
});

import { statSync } from "node:fs";
import type { FormatName } from "../message/formats/formats.ts";
import type { Format } from "../message/formats/format.ts";
import { documents } from "../sources/documents/documents.ts";
import type { CheckpointStore } from "../sources/ndjson/checkpoint.ts";
import { ndjson } from "../sources/ndjson/ndjson.ts";
import type { LineIdentity } from "../sources/ndjson/read-line.ts";
import type { Source } from "../sources/source.ts";
import { namedFormat, type IdentityOptions } from "./identity-options.ts";
import { UsageError } from "./usage-error.ts";

export interface RunSourceOptions extends IdentityOptions {
  readonly source: string;
  readonly identity?: FormatName;
  readonly typePath?: string;
  readonly tenant?: string;
  readonly maxLineBytes?: number;
  readonly maxFileBytes?: number;
}

/** What a run tells of its source. */
export interface RunProgress {
  /** Lines or files that were handed over and are not settled. */
  readonly unsettled: number;
  /** How much of the source is done, from 0 to 1; `undefined` where nobody can tell. */
  readonly done: number | undefined;
  readonly ignored: Readonly<Record<string, number>>;
}

export interface RunSource {
  readonly source: Source;
  readonly fromStdin: boolean;
  progress(): RunProgress;
}

/** What the flags ask for, checked before anything is opened; `open` makes the source of it. */
export interface RunSourcePlan {
  open(checkpoints: CheckpointStore, onNotice: (text: string) => void): RunSource;
}

// These are documents: a line means nothing in them.
const documentFormats: readonly FormatName[] = ["as4", "edifact", "x12"];

/**
 * The source that the flags mean: lines, or with a document's format or a directory whole files. Throws a usage error
 * for flags that do not fit together.
 */
export function planSource(options: RunSourceOptions): RunSourcePlan {
  const { source: from, identity, tenant, maxLineBytes, maxFileBytes } = options;
  const fromStdin = from === "-";
  const lines = lineIdentity(options);
  const isDirectory = !fromStdin && statSync(from, { throwIfNoEntry: false })?.isDirectory() === true;
  if (identity === undefined ? isDirectory : isDirectory || documentFormats.includes(identity)) {
    if (fromStdin) throw new UsageError(`--identity ${String(identity)} reads whole files; stdin has lines.`);
    if (identity === undefined)
      throw new UsageError(`${from} is a directory: --identity must say what its files are.`);
    return {
      open(checkpoints, onNotice) {
        const source = documents({
          from,
          identity: lines as Format,
          tenant,
          maxFileBytes,
          checkpoints,
          onNotice,
        });
        const progress = (): RunProgress => {
          const { unsettled, ignored, files, totalFiles } = source.progress();
          return { unsettled, ignored, done: totalFiles === 0 ? undefined : files / totalFiles };
        };
        return { source, fromStdin: false, progress };
      },
    };
  }
  return {
    open(checkpoints, onNotice) {
      const source = ndjson({
        from: fromStdin ? process.stdin : from,
        ...{ identity: lines, tenant, maxLineBytes, checkpoints, onNotice },
      });
      const size = fromStdin ? undefined : statSync(from, { throwIfNoEntry: false })?.size;
      const progress = (): RunProgress => {
        const { unsettled, ignored, settledTo } = source.progress();
        return { unsettled, ignored, done: size ? Math.min(settledTo / size, 1) : undefined };
      };
      return { source, fromStdin, progress };
    },
  };
}

function lineIdentity(options: RunSourceOptions): LineIdentity {
  const { identity, idPath, idHeader, idRule, producer, keyPath, typePath } = options;
  if (identity !== undefined) {
    if (typePath !== undefined)
      throw new UsageError("--type-path goes with --id-path alone, not with --identity.");
    // By its name, which lets the source read structured events without looking for a capture.
    if (identity === "cloudevents") return identity;
    return namedFormat(identity, "--identity", options);
  }
  if (idHeader !== undefined) {
    if (idPath !== undefined || typePath !== undefined)
      throw new UsageError("--id-header takes the place of --id-path and --type-path.");
    return namedFormat("header", "--identity", options);
  }
  if (idRule !== undefined) throw new UsageError("--id-rule needs --id-header.");
  if (idPath !== undefined) {
    if (producer === undefined)
      throw new UsageError("With --id-path, --producer must say who produced the messages.");
    return { idPath, producer, keyPath, typePath };
  }
  if (producer ?? keyPath ?? typePath)
    throw new UsageError("--producer, --key-path and --type-path need --id-path.");
  return "cloudevents";
}

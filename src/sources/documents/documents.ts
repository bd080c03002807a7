import { basename } from "node:path";
import { InboxError } from "../../errors.ts";
import { toFormat, type FormatChoice } from "../../message/formats/formats.ts";
import { isRejected, type Received } from "../../message/message.ts";
import { rejectMessage } from "../../message/reject-message.ts";
import type { CheckpointStore } from "../ndjson/checkpoint.ts";
import { createItemReader } from "../read-items.ts";
import type { Intake, Source } from "../source.ts";
import { createRedelivery } from "../redelivery.ts";
import { createUnsettled } from "../unsettled.ts";
import { documentPaths, readDocument, type DocumentFile } from "./document-files.ts";

export interface DocumentsOptions {
  /** A file, or a directory of files: each file is one delivery. Files must be whole when they appear there. */
  readonly from: string;
  /** The format: `"edifact"`, `"x12"`, `"as4"`, or any other. */
  readonly identity: FormatChoice;
  /** The tenant of all messages. Default none. */
  readonly tenant?: string | undefined;
  /** A larger file is rejected as `too-large`, with its first 64 KiB. Default 64 MiB. */
  readonly maxFileBytes?: number | undefined;
  /** Remembers which files are done, by name and content. Default: every run reads all of them. */
  readonly checkpoints?: CheckpointStore | undefined;
  /** Told what a person should know. */
  readonly onNotice?: ((text: string) => void) | undefined;
}

/** How far the source has come. */
export interface DocumentsProgress {
  /** Files that are done, by this run or an earlier one. */
  readonly files: number;
  /** Files that an earlier run had done. */
  readonly skipped: number;
  readonly totalFiles: number;
  /** Files whose messages are not all settled: 0 or 1. */
  readonly unsettled: number;
  /** Parts of files that are no messages and need no handling, by reason. */
  readonly ignored: Readonly<Record<string, number>>;
}

export interface DocumentsSource extends Source {
  progress(): DocumentsProgress;
}

/** The header that tells in which file a rejected document was: its name, and SHA-256 of its content. */
export const documentHeader = "document-file";

const mebibyte = 1024 * 1024;

/**
 * Documents from files, one after another in the order of their names: the next one is read when every message of the
 * last one is settled. Which files are done is remembered by their name and the SHA-256 of their content, so that a
 * changed file is read again. Throws `invalid-option`; `start` rejects with `source-failed` for a path that cannot be
 * read.
 */
export function documents(options: DocumentsOptions): DocumentsSource {
  const { from, tenant, checkpoints } = options;
  const maxFileBytes = options.maxFileBytes ?? 64 * mebibyte;
  if (!Number.isInteger(maxFileBytes) || maxFileBytes < 1 || maxFileBytes > 1024 * mebibyte) {
    throw new InboxError(
      "invalid-option",
      `maxFileBytes must be a whole number from 1 to ${1024 * mebibyte}; got ${String(maxFileBytes)}.`,
    );
  }
  const format = toFormat(options.identity);
  const items = createItemReader(format);
  const notice = options.onNotice ?? (() => undefined);
  const unsettled = createUnsettled();
  const redelivery = createRedelivery(unsettled, (delivery) => void intake.deliver([delivery]));
  let paths: readonly string[] = [];
  let files = 0;
  let skipped = 0;
  let saveFails = false;
  let intake: Intake;
  let stopped = false;
  let closed = false;
  let reading: Promise<void> = Promise.resolve();
  let wake: () => void = () => undefined;

  async function readAll(): Promise<void> {
    for (const path of paths) {
      if (stopped) return;
      const file = await readDocument(path, maxFileBytes);
      const key = `document:${format.name}:${file.name}:${file.sha256}`;
      const saved = await checkpoints?.load(key);
      if (saved === "done") skipped++;
      else if (!(await work(file, key, saved === "begun"))) return;
      files++;
    }
    if (skipped > 0) notice(`${skipped} of ${paths.length} files were done before.`);
  }

  /** Hands a file over and waits until it is settled; false if the source was closed before that. */
  async function work(file: DocumentFile, key: string, begunBefore: boolean): Promise<boolean> {
    const messages = messagesOf(file);
    if (messages.length > 0) {
      // A run that dies in this file leaves the mark, by which the next one hands it over as a redelivery.
      await save(key, "begun");
      if (stopped) return false;
      await intake.deliver(unsettled.add({ start: files, bytes: file.bytes.length }, messages, begunBefore));
      // What is in hand when the source stops may still be settled, until it closes.
      while (!closed && unsettled.count > 0) await new Promise<void>((resolve) => (wake = resolve));
    }
    if (unsettled.count > 0) return false;
    await save(key, "done");
    return true;
  }

  function messagesOf(file: DocumentFile): readonly Received[] {
    const { name, bytes, size, sha256, tooLarge } = file;
    const all = tooLarge
      ? [
          rejectMessage({
            code: "too-large",
            text:
              `The document is ${size} bytes, over the limit of ${maxFileBytes}: its first ${bytes.length} are kept. ` +
              `SHA-256 of the whole: ${sha256}.`,
            bytes,
          }),
        ]
      : items.read({ body: bytes, channel: name, tenant });
    return all.map((received) =>
      isRejected(received)
        ? { ...received, headers: { ...received.headers, [documentHeader]: `${name}:${sha256}` } }
        : received,
    );
  }

  async function save(key: string, value: string): Promise<void> {
    try {
      await checkpoints?.save(key, value);
      saveFails = false;
    } catch (error) {
      // What is not remembered is read again and found to be duplicates, nothing worse.
      if (!saveFails) notice(`Which files are done cannot be saved: ${(error as Error).message}`);
      saveFails = true;
    }
  }

  async function stop(): Promise<void> {
    stopped = true;
    redelivery.stop();
  }

  return {
    name: `documents:${basename(from)}`,
    progress: () => ({
      ...{ files, skipped, totalFiles: paths.length },
      unsettled: unsettled.count,
      ignored: items.ignored(),
    }),
    async start(given) {
      intake = given;
      paths = await documentPaths(from);
      reading = readAll().then(
        () => {
          if (!stopped) intake.end();
        },
        (error: unknown) => {
          if (!stopped) intake.end(error instanceof Error ? error : new Error(String(error)));
        },
      );
    },
    async settle(settlements) {
      for (const [delivery, settlement] of settlements) redelivery.settle(delivery, settlement);
      wake();
    },
    stop,
    async close() {
      await stop();
      closed = true;
      wake();
      await reading;
    },
  };
}

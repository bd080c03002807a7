import { basename } from "node:path";
import type { Readable } from "node:stream";
import { InboxError } from "../../errors.ts";
import type { Intake, Source } from "../source.ts";
import { resumeFrom, type CheckpointStore, type Resume } from "./checkpoint.ts";
import { foreignFormat, openFile, streamInput, type Input } from "./input.ts";
import { createLineSplitter, type Line, type LineSplitter } from "./line-splitter.ts";
import { createPositionKeeper, type PositionKeeper } from "./position-keeper.ts";
import { createLineReader, type LineIdentity } from "./read-line.ts";
import { createRedelivery } from "../redelivery.ts";
import { createUnsettled } from "../unsettled.ts";
import { wholeNumber } from "../../whole-number.ts";

export interface NdjsonOptions {
  /** The file's path, or a stream such as `process.stdin`, which is read once. */
  readonly from: string | Readable;
  /** How lines name their messages: a format (`"cloudevents"`, `"sqs"`, ...), or where plain JSON lines have their id. */
  readonly identity: LineIdentity;
  /** The tenant of all messages. Default none. */
  readonly tenant?: string | undefined;
  /** A longer line is rejected as `too-large`, with its first 64 KiB. Default 16 MiB. */
  readonly maxLineBytes?: number | undefined;
  /** Remembers how far a file has been worked through. Default: every run begins at the file's start. */
  readonly checkpoints?: CheckpointStore | undefined;
  /** Most lines handed over at once. Default 500. */
  readonly maxBatch?: number | undefined;
  /** Most lines that are handed over or wait for a retry before reading goes on. Default 10,000. */
  readonly maxUnsettled?: number | undefined;
  /** The same in bytes of lines. Default 64 MiB; one longer line is taken alone. */
  readonly maxUnsettledBytes?: number | undefined;
  /** Told what a person should know: that a run goes on, that a file is another one. */
  readonly onNotice?: ((text: string) => void) | undefined;
  /** Milliseconds of a clock that never goes back. Default `performance.now`. */
  readonly now?: (() => number) | undefined;
}

/** How far a source has come. */
export interface NdjsonProgress {
  /** Everything before this byte of the file is settled. */
  readonly settledTo: number;
  /** Everything before this byte was handed over. */
  readonly handedTo: number;
  /** Lines handed over and not settled, or waiting for a retry. */
  readonly unsettled: number;
  /** Parts of lines that are no messages and need no handling, by reason. */
  readonly ignored: Readonly<Record<string, number>>;
}

/** A source of lines that tells how far it has come. */
export interface NdjsonSource extends Source {
  progress(): NdjsonProgress;
}

const keptBytes = 64 * 1024;
/**
 * Newline-delimited JSON from a file or a stream, in constant memory: each line is one delivery, of one message as a rule. A line that is no message is
 * rejected, with its bytes and its place. A line that is to be retried is kept and handed over again after its delay.
 * It ends when the input has ended and everything is settled. Throws `invalid-option`; `start` rejects with
 * `source-failed` for a file that cannot be read.
 */
export function ndjson(options: NdjsonOptions): NdjsonSource {
  const { from, checkpoints } = options;
  const maxLineBytes = wholeNumber(
    "maxLineBytes",
    options.maxLineBytes,
    16 * 1024 * 1024,
    1,
    512 * 1024 * 1024,
  );
  const maxBatch = wholeNumber("maxBatch", options.maxBatch, 500, 1, 100_000);
  const maxUnsettled = wholeNumber("maxUnsettled", options.maxUnsettled, 10_000, 1, 10_000_000);
  const maxUnsettledBytes = wholeNumber(
    "maxUnsettledBytes",
    options.maxUnsettledBytes,
    64 * 1024 * 1024,
    1,
    Number.MAX_SAFE_INTEGER,
  );
  const notice = options.onNotice ?? (() => undefined);
  const now = options.now ?? (() => performance.now());
  const fileName = typeof from === "string" ? basename(from) : "stdin";
  const reader = createLineReader({
    identity: options.identity,
    tenant: options.tenant,
    fileName,
    maxLineBytes,
  });

  const unsettled = createUnsettled();
  const redelivery = createRedelivery(unsettled, (delivery) => void intake.deliver([delivery]));
  let input: Input | undefined;
  let intake: Intake;
  let keeper: PositionKeeper | undefined;
  let handedTo = 0;
  let openLine: { readonly start: number; readonly end: number } | undefined;
  let stopped = false;
  let closing: Promise<void> | undefined;
  let wake: () => void = () => undefined;

  const settledTo = (): number => unsettled.first() ?? handedTo;

  /** Resolves when the condition holds, or intake was stopped. */
  async function until(condition: () => boolean): Promise<void> {
    while (!stopped && !condition()) await new Promise<void>((resolve) => (wake = resolve));
  }

  async function read(opened: Input, resume: Resume): Promise<void> {
    const splitter = createLineSplitter({ start: resume.start, maxLineBytes, keptBytes });
    const take = (lines: readonly Line[]): Promise<void> => handOver(lines, splitter, resume.handedTo);
    let first = true;
    for await (const chunk of opened.chunks(resume.start)) {
      if (first && resume.start === 0) refuseForeign(opened, chunk);
      first = false;
      await take(splitter.push(chunk));
      if (stopped) return;
    }
    const last = stopped ? undefined : splitter.finish();
    if (last !== undefined) {
      openLine = last;
      await take([last]);
    }
    await until(() => unsettled.count === 0);
  }

  async function handOver(
    lines: readonly Line[],
    splitter: LineSplitter,
    handedBefore: number,
  ): Promise<void> {
    for (let at = 0; at < lines.length; at += maxBatch) {
      const part = lines.slice(at, at + maxBatch);
      const end = part.at(-1)!.end;
      await until(
        () =>
          unsettled.count < maxUnsettled && (unsettled.bytes < maxUnsettledBytes || unsettled.count === 0),
      );
      await keeper?.allow(end);
      if (stopped) return;
      const deliveries = part.flatMap((line) =>
        unsettled.add(
          { start: line.start, bytes: line.bytes.length },
          reader.read(line),
          line.start < handedBefore,
        ),
      );
      handedTo = end;
      keeper?.saveIfDue();
      await intake.deliver(deliveries);
      if (stopped) return;
    }
    // Blank lines behind the last one are done with, too.
    handedTo = splitter.position();
  }

  async function stop(): Promise<void> {
    stopped = true;
    redelivery.stop();
    input?.stop();
    wake();
  }

  async function close(): Promise<void> {
    await stop();
    await keeper?.finish();
    await input?.close();
  }

  return {
    name: `ndjson:${fileName}`,
    progress: () => ({
      settledTo: settledTo(),
      handedTo,
      unsettled: unsettled.count,
      ignored: reader.ignored(),
    }),
    async start(given) {
      intake = given;
      const opened = typeof from === "string" ? await openFile(from) : streamInput(from, fileName);
      input = opened;
      if (opened.path !== undefined) refuseForeign(opened, await opened.read(0, 4));
      const key = `ndjson:${opened.path}`;
      const store = opened.path === undefined ? undefined : checkpoints;
      const resume = await resumeFrom(opened, await store?.load(key));
      if (resume.notice !== undefined) notice(resume.notice);
      handedTo = resume.start;
      if (resume.openLine !== undefined) openLine = { start: resume.openLine, end: resume.start };
      if (store !== undefined) {
        keeper = createPositionKeeper({
          ...{ store, key, input: opened, now },
          position: () => ({
            settledTo: settledTo(),
            handedTo,
            openLine: settledTo() === openLine?.end ? openLine.start : undefined,
          }),
          onFailure: (error) =>
            notice(
              `The position in ${fileName} cannot be saved: ${error instanceof Error ? error.message : String(error)}`,
            ),
        });
      }
      void read(opened, resume).then(
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
      keeper?.saveIfDue();
    },
    stop,
    close: () => (closing ??= close()),
  };
}

function refuseForeign(input: Input, head: Uint8Array): void {
  const reason = foreignFormat(head);
  if (reason !== undefined)
    throw new InboxError("source-failed", `${input.name} holds no lines of UTF-8: ${reason}`);
}

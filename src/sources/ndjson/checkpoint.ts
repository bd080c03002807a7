import { createHash } from "node:crypto";
import type { Input } from "./input.ts";

/** Keeps how far sources have come, across runs. Values are short texts. */
export interface CheckpointStore {
  load(key: string): Promise<string | undefined>;
  save(key: string, value: string): Promise<void>;
}

/** How far a file has been worked through. */
export interface Checkpoint {
  /** Everything before this byte is settled. */
  readonly offset: number;
  /** Nothing from this byte on was ever handed over. */
  readonly handedTo: number;
  /** Where a last line without a line feed begins that ends at `offset`: if the file has grown, it was not whole. */
  readonly openLine: number | undefined;
  /** SHA-256 of the file's first bytes and of those before `offset`, each with its length: it is still that file. */
  readonly content: string;
}

/** Where to begin, and why, in words for people where it is not simply the beginning. */
export interface Resume {
  readonly start: number;
  readonly handedTo: number;
  /** As in the checkpoint: still without a line feed, and nothing behind it. */
  readonly openLine: number | undefined;
  readonly notice: string | undefined;
}

const sampleBytes = 4096;

/**
 * A digest of what tells one file's content from another's, up to `offset`: its first 4 KiB and the 4 KiB before the
 * offset. A file that has only grown keeps it, a copy has it, another file under the same name has not.
 */
export async function contentMark(input: Input, offset: number): Promise<string> {
  const length = Math.min(sampleBytes, offset);
  const head = await input.read(0, length);
  const tail = await input.read(offset - length, length);
  return createHash("sha256").update(`${length}:`).update(head).update(tail).digest("hex");
}

/** Decides where a run begins in a file that an earlier one may have worked on. */
export async function resumeFrom(input: Input, saved: string | undefined): Promise<Resume> {
  if (saved === undefined) return fromStart(undefined);
  const checkpoint = parseCheckpoint(saved);
  if (checkpoint === undefined) {
    return fromStart(`The saved position of ${input.name} cannot be read: starting at its beginning.`);
  }
  const { offset, handedTo, openLine, content } = checkpoint;
  const size = await input.size();
  if (size < offset || (await contentMark(input, offset)) !== content) {
    return fromStart(`${input.name} is not the file it was: starting at its beginning.`);
  }
  const grown = size > offset;
  const start = openLine !== undefined && grown ? openLine : offset;
  const notice = start === 0 ? undefined : `Going on in ${input.name} at byte ${start} of ${size}.`;
  return { start, handedTo, openLine: grown ? undefined : openLine, notice };
}

const fromStart = (notice: string | undefined): Resume => ({
  start: 0,
  handedTo: 0,
  openLine: undefined,
  notice,
});

/** The checkpoint as text for the store. */
export const printCheckpoint = (checkpoint: Checkpoint): string =>
  JSON.stringify({ format: 1, ...checkpoint });

/** The checkpoint in a saved text; `undefined` for anything else. */
export function parseCheckpoint(text: string): Checkpoint | undefined {
  let parsed: Partial<Record<keyof Checkpoint | "format", unknown>> | null;
  try {
    parsed = JSON.parse(text) as typeof parsed;
  } catch {
    return undefined;
  }
  if (typeof parsed !== "object" || parsed === null || parsed.format !== 1) return undefined;
  const { offset, handedTo, openLine, content } = parsed;
  if (!isOffset(offset) || !isOffset(handedTo) || typeof content !== "string") return undefined;
  if (openLine !== undefined && !isOffset(openLine)) return undefined;
  return { offset, handedTo, openLine, content };
}

const isOffset = (value: unknown): value is number =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= 0;

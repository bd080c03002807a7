import { createHash, type Hash } from "node:crypto";

/** One line that is not blank, without its line ending. */
export interface Line {
  /** Where the line begins in the file, in bytes. */
  readonly start: number;
  /** Where the next line begins. */
  readonly end: number;
  /** The whole line, or the first bytes of one that is too long. A copy: it keeps nothing else in memory. */
  readonly bytes: Buffer;
  /** The line's length, line ending excluded. */
  readonly length: number;
  /** SHA-256 of the whole of a line that is too long, in hex. */
  readonly tooLong: string | undefined;
  /** Whether the line had its line feed, or simply was the last one. */
  readonly terminated: boolean;
}

export interface LineSplitter {
  /** Takes the next bytes and returns the lines they complete. */
  push(chunk: Uint8Array): Line[];
  /** Takes the end of the input and returns the line that had no line feed. */
  finish(): Line | undefined;
  /** Where the line begins that is not complete yet: all before it has been returned. */
  position(): number;
}

export interface LineSplitterOptions {
  /** Where the first byte stands in the file. */
  readonly start: number;
  readonly maxLineBytes: number;
  /** How much of a line that is too long is kept. */
  readonly keptBytes: number;
}

const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf]);

/**
 * Cuts bytes into lines at LF or CRLF. Blank lines are passed over, and so is a byte order mark at the file's start.
 * Holds at most one line of `maxLineBytes`; of a longer one only a prefix and a digest.
 */
export function createLineSplitter(options: LineSplitterOptions): LineSplitter {
  const { maxLineBytes, keptBytes } = options;
  let start = options.start;
  let parts: Uint8Array[] = [];
  let partBytes = 0;
  let skipped: { hash: Hash; prefix: Buffer; length: number } | undefined;

  /** Bytes of the line that begins at `start`; over the limit they are counted and hashed, no longer kept. */
  function gather(piece: Uint8Array): void {
    if (skipped !== undefined) {
      skipped.hash.update(piece);
      skipped.length += piece.length;
      return;
    }
    parts.push(piece);
    partBytes += piece.length;
    // More bytes than the limit may be those of a line that fits: its carriage return, and the file's byte order mark.
    if (partBytes > maxLineBytes + 1 + (start === 0 ? byteOrderMark.length : 0)) skipRest();
  }

  function skipRest(): void {
    const hash = createHash("sha256");
    for (const part of parts) hash.update(part);
    skipped = { hash, prefix: Buffer.concat(parts).subarray(0, keptBytes), length: partBytes };
    parts = [];
  }

  function complete(end: number, terminated: boolean): Line | undefined {
    let bytes = Buffer.concat(parts);
    if (bytes.at(-1) === carriageReturn) bytes = bytes.subarray(0, -1);
    if (start === 0 && bytes.subarray(0, 3).equals(byteOrderMark)) bytes = bytes.subarray(3);
    if (skipped === undefined && bytes.length > maxLineBytes) skipRest();
    const common = { start, end, terminated };
    const line: Line | undefined =
      skipped !== undefined
        ? {
            ...common,
            bytes: Buffer.from(skipped.prefix),
            length: skipped.length,
            tooLong: skipped.hash.digest("hex"),
          }
        : isBlank(bytes)
          ? undefined
          : { ...common, bytes, length: bytes.length, tooLong: undefined };
    start = end;
    parts = [];
    partBytes = 0;
    skipped = undefined;
    return line;
  }

  const gathered = (): number => skipped?.length ?? partBytes;

  return {
    push(chunk) {
      const lines: Line[] = [];
      let from = 0;
      for (let at = chunk.indexOf(lineFeed); at !== -1; at = chunk.indexOf(lineFeed, from)) {
        gather(chunk.subarray(from, at));
        from = at + 1;
        const line = complete(start + gathered() + 1, true);
        if (line !== undefined) lines.push(line);
      }
      if (from < chunk.length) gather(chunk.subarray(from));
      return lines;
    },
    finish: () => (gathered() === 0 ? undefined : complete(start + gathered(), false)),
    position: () => start,
  };
}

function isBlank(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte === 0x20 || byte === 0x09 || byte === carriageReturn);
}

import { InboxError } from "../errors.ts";
import { decodeUtf8 } from "../message/utf8.ts";

/** A line of a file, and which one it is, from 1. */
export interface NumberedLine {
  readonly number: number;
  readonly text: string;
}

/** What holds lines: a file's stream, or texts. */
export type Chunks = AsyncIterable<Uint8Array | string> | Iterable<Uint8Array | string>;

/** Why a line of a file is refused. */
export const refusedLine = (number: number, reason: string): InboxError =>
  new InboxError("import-refused", `Line ${number}: ${reason}`);

const lineFeed = 0x0a;

/**
 * The lines of a stream, blank ones passed over. Holds one line at most. Throws `import-refused` for a line that is too
 * long or no UTF-8.
 */
export async function* chunkLines(chunks: Chunks, maxLineBytes: number): AsyncGenerator<NumberedLine> {
  let number = 1;
  let parts: Uint8Array[] = [];
  let length = 0;
  const gather = (part: Uint8Array): void => {
    length += part.byteLength;
    if (length > maxLineBytes) throw refusedLine(number, `it is longer than ${maxLineBytes} bytes.`);
    parts.push(part);
  };
  const complete = (): NumberedLine | undefined => {
    const text = decodeUtf8(Buffer.concat(parts));
    if (text === undefined) throw refusedLine(number, "it is no UTF-8.");
    parts = [];
    length = 0;
    const line = { number: number++, text: text.trim() };
    return line.text === "" ? undefined : line;
  };
  for await (const chunk of chunks) {
    const bytes = typeof chunk === "string" ? Buffer.from(chunk) : chunk;
    let from = 0;
    for (let at = bytes.indexOf(lineFeed); at !== -1; at = bytes.indexOf(lineFeed, from)) {
      gather(bytes.subarray(from, at));
      from = at + 1;
      const line = complete();
      if (line !== undefined) yield line;
    }
    // A copy: the stream may use its buffer again.
    if (from < bytes.byteLength) gather(Uint8Array.from(bytes.subarray(from)));
  }
  const last = complete();
  if (last !== undefined) yield last;
}

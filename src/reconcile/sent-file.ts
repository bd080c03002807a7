import { once } from "node:events";
import { open, stat, type FileHandle } from "node:fs/promises";
import { extname } from "node:path";
import { fingerprintMode, type FingerprintOptions } from "../message/fingerprint-mode.ts";
import type { FingerprintMode } from "../message/fingerprint.ts";
import { showValue } from "../message/show-value.ts";
import { decodeUtf8 } from "../message/utf8.ts";
import { createLineSplitter, type Line } from "../sources/ndjson/line-splitter.ts";
import { refused, sentMessage, type SentFields } from "./sent-fields.ts";
import type { SentDefaults, SentMessage, SentReading, SentSource } from "./sent.ts";

export interface SentFileOptions extends SentDefaults {
  /**
   * `ids`: each line is an id, as it stands. `ndjson`: each line is an object with `id` and, where there are any,
   * `producer`, `tenant`, `time`, and `payload` (text), or `fingerprint` with `fingerprintMode`. Default: by the file's
   * name, `.ndjson`, `.jsonl` and `.json` are ndjson.
   */
  readonly format?: "ids" | "ndjson" | undefined;
  /** How the consumer compares payloads, for a file that holds them. Default: by their bytes. */
  readonly fingerprint?: FingerprintOptions | undefined;
}

/** More than any message's identity takes, written with all its characters escaped. */
const maxIdsLineBytes = 65_536;
const maxNdjsonLineBytes = 16 * 1024 * 1024;

/**
 * What a file says was sent, one message a line; blank lines are passed over. The file is read twice or more and must
 * not change meanwhile. A line that is no message refuses the whole file, with the line's number.
 */
export function sentFile(path: string, options: SentFileOptions = {}): SentSource {
  const format =
    options.format ??
    (/^\.(ndjson|jsonl|json)$/i.test(extname(path)) ? ("ndjson" as const) : ("ids" as const));
  const mode = fingerprintMode(options.fingerprint ?? { by: "bytes" });
  const parse = (text: string): SentMessage | string =>
    format === "ndjson"
      ? fromJson(text, options, mode)
      : options.format === undefined && looksLikeJson(text)
        ? 'It looks like JSON. Give format "ndjson", or "ids" if it is an id as it stands.'
        : sentMessage({ id: text }, options, mode);

  function messageOf(line: Line): SentMessage | string {
    if (line.tooLong !== undefined) return `It has ${line.length} bytes, which no message's identity has.`;
    const text = decodeUtf8(line.bytes);
    return text === undefined ? "It is no UTF-8." : parse(text);
  }

  async function* read(file: FileHandle, state: FileState): AsyncGenerator<SentMessage[]> {
    const lines = createLineSplitter({
      start: 0,
      maxLineBytes: format === "ndjson" ? maxNdjsonLineBytes : maxIdsLineBytes,
      keptBytes: 64,
    });
    const refusal = async (line: Line, why: string): Promise<Error> =>
      refused(path, `line ${await lineNumber(file, line.start)}`, why);
    const chunk = Buffer.alloc(256 * 1024);
    let position = 0;
    for (;;) {
      const { bytesRead } = await file.read(chunk, 0, chunk.length, position);
      if (bytesRead === 0) break;
      position += bytesRead;
      const batch: SentMessage[] = [];
      // A copy: the splitter keeps the piece of a line that is not complete.
      for (const line of lines.push(Buffer.from(chunk.subarray(0, bytesRead)))) {
        const message = messageOf(line);
        if (typeof message === "string") throw await refusal(line, message);
        batch.push(message);
      }
      if (batch.length > 0) yield batch;
    }
    const last = lines.finish();
    if (last !== undefined) {
      const message = messageOf(last);
      if (typeof message === "string") throw await refusal(last, message);
      yield [message];
    }
    const now = await file.stat();
    if (now.size !== state.size || now.mtimeMs !== state.mtimeMs || position !== state.size) {
      throw refused(path, `at byte ${position}`, "The file changed while it was read.");
    }
  }

  return {
    name: path,
    async open(): Promise<SentReading> {
      if (!(await stat(path)).isFile())
        throw refused(path, "as a whole", "It is no file, and it must be read twice.");
      const file = await open(path, "r");
      let closing: Promise<void> | undefined;
      const state = await file.stat();
      return { read: () => read(file, state), close: () => (closing ??= file.close()) };
    },
  };
}

interface FileState {
  readonly size: number;
  readonly mtimeMs: number;
}

const looksLikeJson = (text: string): boolean => /^\s*\{\s*"/.test(text);

function fromJson(text: string, defaults: SentDefaults, mode: FingerprintMode): SentMessage | string {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return "It is no JSON.";
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return `It is ${showValue(value)}, not an object with an id.`;
  }
  const { payload, ...fields } = value as SentFields & { readonly payload?: unknown };
  if (payload !== undefined && payload !== null && typeof payload !== "string") {
    return "The payload must be a text: the very text that was sent.";
  }
  return sentMessage({ ...fields, payload: payload ?? undefined }, defaults, mode);
}

/** The number of the line that begins at this byte. Read again from the beginning: only a refusal asks. */
async function lineNumber(file: FileHandle, start: number): Promise<number> {
  let number = 1;
  if (start === 0) return number;
  const stream = file.createReadStream({ start: 0, end: start - 1, autoClose: false });
  stream.on("data", (chunk) => {
    for (const byte of chunk as Buffer) if (byte === 0x0a) number += 1;
  });
  await once(stream, "end");
  return number;
}

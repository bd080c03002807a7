import { open, realpath, type FileHandle } from "node:fs/promises";
import type { Readable } from "node:stream";
import { InboxError } from "../../errors.ts";

/** Bytes to read lines from. */
export interface Input {
  /** Names the input in logs: the file's path as it was given, or `stdin`. */
  readonly name: string;
  /** The file's real path; `undefined` for what cannot be read again. */
  readonly path: string | undefined;
  /** Reads from a position (0 where it cannot be chosen) until the end. */
  chunks(from: number): AsyncIterable<Uint8Array>;
  /** The file's size in bytes now; 0 for what cannot be read again. */
  size(): Promise<number>;
  /** The bytes from a position, fewer at the end of the file; none for what cannot be read again. */
  read(from: number, length: number): Promise<Uint8Array>;
  /** Makes `chunks` end, also while it waits. */
  stop(): void;
  close(): Promise<void>;
}

const chunkBytes = 256 * 1024;

/** Opens a file. Throws `source-failed` where it is missing, unreadable or no file. */
export async function openFile(path: string): Promise<Input> {
  let handle: FileHandle;
  let realPath: string;
  try {
    handle = await open(path, "r");
    realPath = await realpath(path);
  } catch (error) {
    throw new InboxError("source-failed", `${path} cannot be read: ${reasonOf(error)}`, { cause: error });
  }
  const stat = await handle.stat();
  if (!stat.isFile()) {
    await handle.close();
    throw new InboxError(
      "source-failed",
      `${path} is ${stat.isDirectory() ? "a directory" : "no regular file"}.`,
    );
  }
  let stopped = false;
  const read = async (from: number, length: number): Promise<Uint8Array> => {
    const buffer = Buffer.allocUnsafe(length);
    let filled = 0;
    while (filled < length) {
      const { bytesRead } = await handle.read(buffer, filled, length - filled, from + filled);
      if (bytesRead === 0) break;
      filled += bytesRead;
    }
    return buffer.subarray(0, filled);
  };
  return {
    name: path,
    path: realPath,
    async *chunks(from) {
      let position = from;
      while (!stopped) {
        const { bytesRead, buffer } = await handle.read(
          Buffer.allocUnsafe(chunkBytes),
          0,
          chunkBytes,
          position,
        );
        if (bytesRead === 0) return;
        position += bytesRead;
        yield buffer.subarray(0, bytesRead);
      }
    },
    size: async () => (await handle.stat()).size,
    read,
    stop: () => (stopped = true),
    close: () => handle.close(),
  };
}

/** Reads a stream, such as `process.stdin`, once. */
export function streamInput(stream: Readable, name = "stdin"): Input {
  let stopped = false;
  return {
    name,
    path: undefined,
    async *chunks() {
      try {
        for await (const chunk of stream) {
          if (stopped) return;
          yield typeof chunk === "string" ? Buffer.from(chunk) : (chunk as Uint8Array);
        }
      } catch (error) {
        // Destroying the stream to stop it ends the loop with an error.
        if (!stopped) throw error;
      }
    },
    size: async () => 0,
    read: async () => new Uint8Array(),
    stop() {
      stopped = true;
      stream.destroy();
    },
    close: async () => undefined,
  };
}

/** Why these first bytes are no lines of UTF-8, or `undefined`. Better one clear word than a million rejected lines. */
export function foreignFormat(head: Uint8Array): string | undefined {
  const [first, second] = head;
  if (first === 0x1f && second === 0x8b)
    return "it is compressed by gzip. Unpack it: gzip -dc FILE | inbox run ... --source -";
  if (first === 0x28 && second === 0xb5 && head[2] === 0x2f) {
    return "it is compressed by Zstandard. Unpack it: zstd -dc FILE | inbox run ... --source -";
  }
  if ((first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff)) {
    return "it is UTF-16. Convert it: iconv -f UTF-16 -t UTF-8 FILE | inbox run ... --source -";
  }
  return undefined;
}

function reasonOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === "ENOENT") return "there is no such file.";
  if (code === "EACCES" || code === "EPERM") return "permission denied.";
  return message;
}

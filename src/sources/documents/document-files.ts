import { createHash } from "node:crypto";
import { open, readdir, realpath, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { InboxError } from "../../errors.ts";

/** A document as it was read: whole, or the beginning of one that is too large. */
export interface DocumentFile {
  readonly name: string;
  /** The whole document, or its first bytes. */
  readonly bytes: Buffer;
  readonly size: number;
  /** SHA-256 of the whole document, in hex. */
  readonly sha256: string;
  readonly tooLarge: boolean;
}

const chunkBytes = 256 * 1024;
const keptBytes = 64 * 1024;

/**
 * The files a path means: itself, or the regular files of a directory by name, without those that begin with a dot and
 * without looking into directories inside. Throws `source-failed` for a path that cannot be read.
 */
export async function documentPaths(path: string): Promise<readonly string[]> {
  return reading(path, async () => {
    const place = await realpath(path);
    const info = await stat(place);
    if (info.isFile()) return [path];
    if (!info.isDirectory()) throw new Error("it is no regular file and no directory.");
    const entries = await readdir(place, { withFileTypes: true });
    return entries
      .filter((entry) => entry.isFile() && !entry.name.startsWith("."))
      .map((entry) => entry.name)
      .sort()
      .map((name) => join(path, name));
  });
}

/** Reads a document. One over `maxBytes` is hashed to its end but not kept. Throws `source-failed`. */
export async function readDocument(path: string, maxBytes: number): Promise<DocumentFile> {
  return reading(path, async () => {
    const handle = await open(path, "r");
    try {
      const hash = createHash("sha256");
      let chunks: Buffer[] = [];
      let size = 0;
      for (;;) {
        const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(chunkBytes), 0, chunkBytes, size);
        if (bytesRead === 0) break;
        const chunk = buffer.subarray(0, bytesRead);
        hash.update(chunk);
        const before = size;
        size += bytesRead;
        if (size <= maxBytes) chunks.push(chunk);
        else if (before <= maxBytes)
          chunks = [Buffer.from(Buffer.concat([...chunks, chunk]).subarray(0, keptBytes))];
      }
      return {
        name: basename(path),
        bytes: Buffer.concat(chunks),
        size,
        sha256: hash.digest("hex"),
        tooLarge: size > maxBytes,
      };
    } finally {
      await handle.close();
    }
  });
}

async function reading<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    const reason =
      (cause as NodeJS.ErrnoException).code === "ENOENT"
        ? "there is no such file."
        : (cause as Error).message;
    throw new InboxError("source-failed", `${path} cannot be read: ${reason}`, { cause });
  }
}

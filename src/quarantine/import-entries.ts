import type { QuarantineStore } from "../store/quarantine-store.ts";
import { chunkLines, type Chunks } from "./chunk-lines.ts";
import { readExportedLine, type ExportedEntry } from "./import-line.ts";

/** What became of the lines of an export. */
export interface ImportSummary {
  readonly lines: number;
  readonly imported: number;
  /** There already: imported before, exported from here, or with an open entry of the same body. */
  readonly known: number;
  /** The identity is applied with this very payload: there is nothing to decide. */
  readonly applied: number;
  /** Decided on where they were exported; these are not imported. */
  readonly decided: number;
}

export interface ImportOptions {
  /** Only read and check every line. Default `false`. */
  readonly check?: boolean | undefined;
  /** The longest line, in bytes. Default 256 MiB. */
  readonly maxLineBytes?: number | undefined;
}

/**
 * Takes the lines of an export in, in their order, each in a transaction of its own. Dying on the way, or a line that is
 * refused, leaves the lines before it imported; importing the same file again takes the rest.
 */
export async function importEntries(
  store: QuarantineStore,
  chunks: Chunks,
  { check = false, maxLineBytes = 256 * 1024 * 1024 }: ImportOptions,
): Promise<ImportSummary> {
  const counts = { lines: 0, imported: 0, known: 0, applied: 0, decided: 0 };
  for await (const line of chunkLines(chunks, maxLineBytes)) {
    counts.lines++;
    const exported = readExportedLine(line);
    if (exported.status === "decided") counts.decided++;
    else if (check) continue;
    else if (await isHere(store, exported)) counts.known++;
    else counts[await store.import(exported.entry)]++;
  }
  return counts;
}

/** Whether the very entry is in this table still, with whatever decision. */
async function isHere(store: QuarantineStore, { id, entry }: ExportedEntry): Promise<boolean> {
  const here = await store.stored(id);
  return (
    here !== undefined &&
    here.consumer === entry.consumer &&
    here.digest === entry.identity?.digest &&
    here.fingerprint === entry.fingerprint.digest &&
    here.firstFailedAt.getTime() === entry.firstFailedAt.getTime()
  );
}

import { hasCode } from "../errors.ts";
import type { EntryMark, ImportOutcome, QuarantineStore } from "../store/quarantine-store.ts";
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

const batchLines = 200;
const batchCharacters = 8 * 1024 * 1024;

/**
 * Takes the lines of an export in, in their order, in transactions of some hundred lines. Dying on the way, or a line
 * that is refused, leaves lines before it imported; importing the same file again takes the rest.
 */
export async function importEntries(
  store: QuarantineStore,
  chunks: Chunks,
  { check = false, maxLineBytes = 256 * 1024 * 1024 }: ImportOptions,
): Promise<ImportSummary> {
  const counts = { lines: 0, imported: 0, known: 0, applied: 0, decided: 0 };
  let batch: ExportedEntry[] = [];
  let characters = 0;
  const flush = async (): Promise<void> => {
    const here = await entriesHere(store, batch);
    const fresh = batch.filter((exported) => !here.has(exported));
    counts.known += here.size;
    for (const outcome of await importBatch(store, fresh)) counts[outcome]++;
    batch = [];
    characters = 0;
  };
  try {
    for await (const line of chunkLines(chunks, maxLineBytes)) {
      counts.lines++;
      const exported = readExportedLine(line);
      if (exported.status === "decided") counts.decided++;
      else if (!check) {
        batch.push(exported);
        characters += line.text.length;
      }
      if (batch.length >= batchLines || characters >= batchCharacters) await flush();
    }
  } finally {
    // Also before a line that is refused.
    if (batch.length > 0) await flush();
  }
  return counts;
}

async function importBatch(
  store: QuarantineStore,
  batch: readonly ExportedEntry[],
): Promise<readonly ImportOutcome[]> {
  if (batch.length === 0) return [];
  const entries = batch.map(({ entry }) => entry);
  try {
    return await store.importAll(entries);
  } catch (error) {
    // Another import has the same identities in another order, and the server chose this one to give way.
    if (!hasCode(error, "40P01")) throw error;
    const outcomes: ImportOutcome[] = [];
    for (const entry of entries) outcomes.push(await store.import(entry));
    return outcomes;
  }
}

/** Those that are in this very table still, with whatever decision. */
async function entriesHere(
  store: QuarantineStore,
  batch: readonly ExportedEntry[],
): Promise<ReadonlySet<ExportedEntry>> {
  const marks = await store.marks(batch.map(({ id }) => id));
  const byId = new Map(marks.map((mark) => [mark.id, mark]));
  return new Set(batch.filter((exported) => isSame(exported, byId.get(exported.id))));
}

const isSame = ({ entry }: ExportedEntry, here: EntryMark | undefined): boolean =>
  here !== undefined &&
  here.consumer === entry.consumer &&
  here.digest === entry.identity?.digest &&
  here.fingerprint === entry.fingerprint.digest &&
  here.firstFailedAt.getTime() === entry.firstFailedAt.getTime();

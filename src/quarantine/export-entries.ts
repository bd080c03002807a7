import { createProtection } from "../store/protection.ts";
import type { QuarantineFilter, QuarantineRow } from "../store/quarantine-entry.ts";
import type { QuarantineStore, StoredEntry } from "../store/quarantine-store.ts";
import type { Redaction } from "./redact.ts";
import { showPayload } from "./shown-body.ts";

/** Which version of the format a line is written in. */
export const exportVersion = 1;

/**
 * How bodies are written. `stored`: as they lie in the table, so what is sealed stays sealed, and only who has the keys
 * can read it. `open`: as they came. `redacted`: as people may see them; such a file cannot be imported.
 */
export type ExportedBodies = "stored" | "open" | "redacted";

const pageRows = 500;
const chunkBytes = 16 * 1024 * 1024;

/** One line of JSON an entry, oldest first, each with its line feed. Holds some 16 MiB of bodies, or one larger body. */
export async function* exportEntries(
  store: QuarantineStore,
  redaction: Redaction,
  filter: QuarantineFilter,
  bodies: ExportedBodies,
): AsyncGenerator<string> {
  let after: string | undefined;
  for (;;) {
    const rows = await store.list({ ...filter, after, first: "oldest", limit: pageRows });
    for (const ids of chunksOf(rows)) {
      for (const entry of await store.storedAll(ids)) yield await lineOf(store, redaction, entry, bodies);
    }
    if (rows.length < pageRows) return;
    after = rows.at(-1)?.id;
  }
}

function* chunksOf(rows: readonly QuarantineRow[]): Generator<readonly string[]> {
  let ids: string[] = [];
  let bytes = 0;
  for (const { id, payloadBytes } of rows) {
    if (ids.length > 0 && bytes + payloadBytes > chunkBytes) {
      yield ids;
      ids = [];
      bytes = 0;
    }
    ids.push(id);
    bytes += payloadBytes;
  }
  if (ids.length > 0) yield ids;
}

async function lineOf(
  store: QuarantineStore,
  redaction: Redaction,
  entry: StoredEntry,
  bodies: ExportedBodies,
): Promise<string> {
  const { stored, digest: _, repair: _repair, group: _group, keyId: _key, ...facts } = entry;
  const line = { inboxQuarantine: exportVersion, ...facts };
  if (bodies === "stored" && stored.keyId !== null) {
    const { keyId, headers, payload } = stored;
    return jsonLine({ ...line, sealed: { keyId, headers, payload: base64(payload) } });
  }
  const open = stored.keyId === null ? await unsealed.open(entry, stored) : await store.show(entry.id);
  // Purged meanwhile.
  if (open === undefined) return "";
  if (bodies !== "redacted")
    return jsonLine({ ...line, headers: open.headers, payload: base64(open.payload) });
  const shown = showPayload(redaction, open.payload);
  return jsonLine({ ...line, headers: redaction.headers(open.headers), redacted: shown });
}

// Reads what is stored as it came; for the rest the store has the keys.
const unsealed = createProtection(undefined);

const jsonLine = (value: unknown): string => `${JSON.stringify(value)}\n`;

const base64 = (payload: Uint8Array | null): string | null =>
  payload === null ? null : Buffer.from(payload).toString("base64");

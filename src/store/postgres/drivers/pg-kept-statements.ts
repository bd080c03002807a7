import type { RowShape, StatementMemory, StatementUse } from "./pg-statement-memory.ts";

// Enough for an inbox and its handlers; beyond it a statement is parsed each time, as without names.
const maxKept = 64;
const maxSeen = 256;

interface Kept extends StatementUse {
  /** The server has answered the group in which it was parsed. */
  confirmed: boolean;
}

/**
 * Statements kept prepared by one server connection for as long as it lives. Only for a connection that is the
 * server's own: behind a transaction-mode pooler the next transaction may meet another one. A text is given a name when
 * it comes for the second time, and is bound by it once the server has answered its parse.
 */
export function keptStatements(prefix: string): StatementMemory {
  const kept = new Map<string, Kept>();
  const seen = new Set<string>();
  let last: { text: string; again: StatementUse } | null = null;
  let stale: string[] = [];
  let made = 0;

  return {
    use(text) {
      const known = kept.get(text);
      if (known?.confirmed) return known;
      if (last?.text === text) return last.again;
      const shape: RowShape = { fields: [], parsers: [] };
      if (!known && seen.has(text) && kept.size < maxKept) {
        const name = `${prefix}_${made++}`;
        kept.set(text, { name, parse: false, shape, confirmed: false });
        return { name, parse: true, shape };
      }
      if (seen.size < maxSeen) seen.add(text);
      last = { text, again: { name: "", parse: false, shape } };
      return { name: "", parse: true, shape };
    },
    answered(uses, error) {
      if (error !== undefined && isLost(error)) {
        stale.push(...[...kept.values()].map(({ name }) => name));
        kept.clear();
        return;
      }
      for (const { name, parse } of uses) {
        if (!parse || name === "") continue;
        for (const [text, entry] of kept) {
          if (entry.name !== name) continue;
          if (error === undefined) entry.confirmed = true;
          else {
            kept.delete(text);
            stale.push(name);
          }
        }
      }
    },
    forget() {
      last = null;
    },
    toClose() {
      const names = stale;
      stale = [];
      return names;
    },
  };
}

/**
 * The server no longer has the statement (somebody ran DISCARD ALL), or a table has changed under it. The transaction is
 * lost; the next try parses anew.
 */
function isLost(error: unknown): boolean {
  const { code, routine } = error as { code?: unknown; routine?: unknown };
  return code === "26000" || (code === "0A000" && routine === "RevalidateCachedQuery");
}

import type { PgField } from "./pg-client.ts";

/** The columns of a statement's answer, and how to read them. Known once the server has described them. */
export interface RowShape {
  fields: readonly PgField[];
  parsers: readonly ((text: string) => unknown)[];
}

/** How a statement is to be sent. */
export interface StatementUse {
  /** The name it has on the server; empty for the unnamed one. */
  readonly name: string;
  /** Whether the server still has to parse and describe it. */
  readonly parse: boolean;
  readonly shape: RowShape;
}

/** Which statements the server still has parsed. */
export interface StatementMemory {
  use(text: string): StatementUse;
  /** A group of statements was answered; `error`: with the error that ended it. */
  answered(uses: readonly StatementUse[], error: unknown): void;
  /** What the transaction at hand had parsed is not sure to be there any more. */
  forget(): void;
  /** The names the server may hold that nobody will use again. */
  toClose(): readonly string[];
}

// Enough for handlers; beyond it a statement is parsed each time, as without names.
const maxNames = 16;
const maxSeen = 64;

/**
 * Remembers the unnamed statement, which holds the text that was parsed last. With `named`, a text that comes back
 * after another one is given a name; names last to the end of the transaction at most, and whoever makes one closes the
 * old holder of the name first, so that names left behind on a pooler's connection hurt nobody.
 */
export function statementMemory(named: boolean): StatementMemory {
  let last: { text: string; again: StatementUse } | null = null;
  const names = new Map<string, StatementUse>();
  const seen = new Set<string>();
  let left: string[] = [];

  return {
    use(text) {
      if (last?.text === text) return last.again;
      const known = names.get(text);
      if (known) return known;
      const shape: RowShape = { fields: [], parsers: [] };
      if (named && seen.has(text) && names.size < maxNames) {
        const name = `inbox_${names.size}`;
        names.set(text, { name, parse: false, shape });
        return { name, parse: true, shape };
      }
      if (named && seen.size < maxSeen) seen.add(text);
      last = { text, again: { name: "", parse: false, shape } };
      return { name: "", parse: true, shape };
    },
    answered() {},
    forget() {
      left.push(...[...names.values()].map(({ name }) => name));
      last = null;
      names.clear();
      seen.clear();
    },
    toClose() {
      const closing = left;
      left = [];
      return closing;
    },
  };
}

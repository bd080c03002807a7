import { InboxError } from "../../errors.ts";

/** Quotes a schema name for SQL. Any name PostgreSQL takes is allowed: 1 to 63 bytes of UTF-8 without NUL. */
export function quoteSchema(name: string): string {
  const bytes = typeof name === "string" ? Buffer.byteLength(name) : 0;
  if (bytes < 1 || bytes > 63 || name.includes("\0") || !name.isWellFormed()) {
    throw new InboxError(
      "invalid-option",
      `schema must be a name of 1 to 63 bytes without NUL; got ${JSON.stringify(name)}.`,
    );
  }
  return `"${name.replaceAll('"', '""')}"`;
}

import { sqlOutline } from "./sql-outline.ts";

/** A statement that would end or begin the transaction, which is the lane's to do. Savepoints are the handler's. */
const control =
  /^\s*(?:begin|start\s+transaction|commit|end|abort|rollback(?!\s+(?:(?:work|transaction)\s+)?to\b)|prepare\s+transaction)\b/i;

/** What a handler is told whose statement is such. */
export const endsTransaction: string =
  "A handler must not end its transaction: the inbox commits claim and work together.";

/** Text in which the words at the beginning are not all there is to see: comments in front, or more than one statement. */
const needsReading = /^\s*[-/]|;(?!\s*$)|\/\*|--/;

/**
 * Whether a text holds a statement that ends or begins a transaction, also behind a comment or as one of several. Reads
 * strings with `standard_conforming_strings` on, which is the server's default; it takes the `end` of a function body
 * written as `begin atomic … end` for such a statement.
 */
export function controlsTransaction(text: string): boolean {
  // One statement without comments, as nearly all are: no reading of the whole text.
  if (!needsReading.test(text)) return control.test(text);
  return sqlOutline(text)
    .split(";")
    .some((statement) => control.test(statement));
}

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
  return withoutOpaque(text)
    .split(";")
    .some((statement) => control.test(statement));
}

/** What may hold anything: a line comment, a string with escapes, a string, a name in quotes, a string in dollars. */
const opaque =
  /--[^\r\n]*|(?<![\w$\u0080-\uffff])e'(?:[^'\\]|\\[^]|'')*'|'(?:[^']|'')*'|"(?:[^"]|"")*"|(?<![\w$\u0080-\uffff])\$(?<tag>(?:[a-z_\u0080-\uffff][\w\u0080-\uffff]*)?)\$[^]*?\$\k<tag>\$|\/\*/gi;

/** The text with a space in place of each comment and `''` in place of all in quotes. */
function withoutOpaque(text: string): string {
  let clear = "";
  let at = 0;
  for (;;) {
    opaque.lastIndex = at;
    const found = opaque.exec(text);
    if (found === null) return clear + text.slice(at);
    clear += text.slice(at, found.index);
    const [part] = found;
    const comment = part === "/*" || part.startsWith("--");
    clear += comment ? " " : "''";
    at = part === "/*" ? commentEnd(text, found.index) : opaque.lastIndex;
  }
}

/** Comments in comments are comments. */
function commentEnd(text: string, start: number): number {
  const edge = /\/\*|\*\//g;
  edge.lastIndex = start;
  let depth = 0;
  for (let found = edge.exec(text); found !== null; found = edge.exec(text)) {
    depth += found[0] === "/*" ? 1 : -1;
    if (depth === 0) return edge.lastIndex;
  }
  return text.length;
}

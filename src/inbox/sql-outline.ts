/**
 * The text of a statement without what its comments, texts, quoted names and dollar-quoted bodies hold, so that one can
 * see what kind of statement it is, and whether it is one. Never throws; what never ends is taken to end with the text.
 */
export function sqlOutline(text: string): string {
  let outline = "";
  for (let at = 0; at < text.length;) {
    const end = endOfHidden(text, at);
    if (end === at) outline += text[at++];
    else {
      outline += text[at] === "-" || text[at] === "/" ? " " : "?";
      at = end;
    }
  }
  return outline;
}

/** Whether the text holds more than one statement. */
export const holdsSeveral = (outline: string): boolean => /;\s*[^\s;]/.test(outline);

/** Where a comment, a text, a quoted name or a dollar-quoted body that begins here ends; `at` where none begins. */
function endOfHidden(text: string, at: number): number {
  const unit = text[at];
  if (unit === "'") {
    const escapes = /[eE]/.test(text[at - 1] ?? "") && !/\w/.test(text[at - 2] ?? "");
    return endOfQuoted(text, at, unit, escapes);
  }
  if (unit === '"') return endOfQuoted(text, at, unit, false);
  if (unit === "-" && text[at + 1] === "-") return endOfLine(text, at);
  if (unit === "/" && text[at + 1] === "*") return endOfComment(text, at);
  return unit === "$" ? endOfDollarQuoted(text, at) : at;
}

/** A carriage return ends a line, too. */
function endOfLine(text: string, from: number): number {
  let at = from;
  while (at < text.length && text[at] !== "\n" && text[at] !== "\r") at++;
  return at;
}

function endOfQuoted(text: string, from: number, quote: string, escapes: boolean): number {
  for (let at = from + 1; at < text.length; at++) {
    if (escapes && text[at] === "\\") at++;
    else if (text[at] === quote) {
      if (text[at + 1] !== quote) return at + 1;
      at++;
    }
  }
  return text.length;
}

/** PostgreSQL's comments nest. */
function endOfComment(text: string, from: number): number {
  let depth = 0;
  for (let at = from; at < text.length; at++) {
    const two = text.slice(at, at + 2);
    if (two === "/*") depth++;
    else if (two === "*/") depth--;
    else continue;
    at++;
    if (depth === 0) return at + 1;
  }
  return text.length;
}

const dollarTag = /\$(?:[A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$/y;

function endOfDollarQuoted(text: string, at: number): number {
  // Behind a word it is a part of that word.
  if (/[\w$\u0080-\uffff]/.test(text[at - 1] ?? "")) return at;
  dollarTag.lastIndex = at;
  const tag = dollarTag.exec(text)?.[0];
  if (tag === undefined) return at;
  const end = text.indexOf(tag, at + tag.length);
  return end === -1 ? text.length : end + tag.length;
}

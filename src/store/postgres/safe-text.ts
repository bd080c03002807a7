/**
 * Text that PostgreSQL takes whatever it was: NUL becomes the symbol U+2400, lone surrogates U+FFFD, and what is over
 * the limit is cut with a note. For error texts and other things people read, never for identities or payloads.
 */
export function safeText(value: string, maxLength: number): string {
  const cut =
    value.length > maxLength ? `${value.slice(0, maxLength)} … (${value.length} characters)` : value;
  return cut.replaceAll("\0", "\u2400").toWellFormed();
}

/** Any value as JSON text that PostgreSQL takes as text: escapes keep NUL and lone surrogates exact. Never throws. */
export function safeJson(value: unknown, maxLength: number): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(value, (_key, part: unknown) => (typeof part === "bigint" ? `${part}` : part));
  } catch {
    text = undefined;
  }
  return safeText(text ?? JSON.stringify(describe(value)), maxLength);
}

function describe(value: unknown): string {
  try {
    return String(value);
  } catch {
    return typeof value;
  }
}

/** A content type taken apart: the media type in lower case, and its parameters by lower-case name. */
export interface MediaType {
  readonly type: string;
  readonly parameters: ReadonlyMap<string, string>;
}

/** Reads a content type; of a parameter that is there twice the first counts. */
export function parseMediaType(text: string): MediaType {
  const parts = splitOutsideQuotes(text);
  const parameters = new Map<string, string>();
  for (const part of parts.slice(1)) {
    const at = part.indexOf("=");
    if (at === -1) continue;
    const name = part.slice(0, at).trim().toLowerCase();
    const value = part.slice(at + 1).trim();
    const quoted = value.length >= 2 && value.startsWith('"') && value.endsWith('"');
    if (!parameters.has(name))
      parameters.set(name, quoted ? value.slice(1, -1).replace(/\\(.)/g, "$1") : value);
  }
  return { type: (parts[0] ?? "").trim().toLowerCase(), parameters };
}

function splitOutsideQuotes(text: string): string[] {
  const parts: string[] = [];
  let start = 0;
  let quoted = false;
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c === 0x22) quoted = !quoted;
    else if (c === 0x5c && quoted) i++;
    else if (c === 0x3b && !quoted) {
      parts.push(text.slice(start, i));
      start = i + 1;
    }
  }
  parts.push(text.slice(start));
  return parts;
}

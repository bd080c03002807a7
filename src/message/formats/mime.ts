import { parseMediaType } from "./media-type.ts";

/** A part of a MIME multipart body: header names in lower case, the content decoded from its transfer encoding. */
export interface MimePart {
  readonly headers: ReadonlyMap<string, string>;
  readonly content: Uint8Array;
}

const maxParts = 1_000;
const maxHeaderBytes = 16_384;

/** The parts between the boundaries; a text says why there are none. Linear; the parts are views, not copies. */
export function mimeParts(body: Uint8Array, boundary: string): readonly MimePart[] | string {
  if (boundary === "" || boundary.length > 200) return "its content type has no usable boundary";
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  const delimiter = Buffer.from(`--${boundary}`, "latin1");
  const parts: MimePart[] = [];
  let at = nextDelimiter(bytes, delimiter, 0);
  for (;;) {
    if (at === -1) return "its last boundary is missing";
    let start = at + delimiter.length;
    if (bytes[start] === 0x2d && bytes[start + 1] === 0x2d) return parts;
    if (parts.length >= maxParts) return `it has more than ${maxParts} parts`;
    start = bytes.indexOf("\n", start) + 1;
    const next = nextDelimiter(bytes, delimiter, start);
    if (start === 0 || next === -1) return "its last boundary is missing";
    // The line break before a boundary belongs to the boundary.
    const end = bytes[next - 2] === 0x0d ? next - 2 : next - 1;
    const part = readPart(bytes.subarray(start, Math.max(start, end)));
    if (typeof part === "string") return part;
    parts.push(part);
    at = next;
  }
}

/** The headers and the rest of a message that begins with headers, or a reason. */
export function splitHeaders(
  bytes: Buffer,
): { readonly headers: ReadonlyMap<string, string>; readonly rest: Buffer } | string {
  const headers = new Map<string, string>();
  let at = 0;
  let last: string | undefined;
  for (;;) {
    const newline = bytes.indexOf("\n", at);
    if (newline === -1 || newline > maxHeaderBytes) return "a part's headers do not end";
    const line = bytes.toString("latin1", at, newline).replace(/\r$/, "");
    at = newline + 1;
    if (line === "") return { headers, rest: bytes.subarray(at) };
    const colon = line.indexOf(":");
    if (/^[ \t]/.test(line)) {
      if (last !== undefined) headers.set(last, `${headers.get(last)!} ${line.trim()}`);
    } else if (colon > 0) {
      last = line.slice(0, colon).trim().toLowerCase();
      headers.set(last, line.slice(colon + 1).trim());
    } else return "a part has a header line without a colon";
  }
}

/** The boundary of a multipart content type, or `undefined` if it is no multipart type. */
export function multipartBoundary(
  contentType: string,
): { readonly boundary: string; readonly start?: string | undefined } | undefined {
  const { type, parameters } = parseMediaType(contentType);
  if (!type.startsWith("multipart/")) return undefined;
  return { boundary: parameters.get("boundary") ?? "", start: parameters.get("start") };
}

function nextDelimiter(bytes: Buffer, delimiter: Buffer, from: number): number {
  let at = bytes.indexOf(delimiter, from);
  // A boundary stands at the beginning of a line.
  while (at > 0 && bytes[at - 1] !== 0x0a) at = bytes.indexOf(delimiter, at + 1);
  return at;
}

function readPart(bytes: Buffer): MimePart | string {
  // A part without headers begins with an empty line.
  const split = splitHeaders(bytes);
  if (typeof split === "string") return split;
  const { headers, rest } = split;
  const encoding = (headers.get("content-transfer-encoding") ?? "binary").toLowerCase();
  if (encoding === "base64") return { headers, content: Buffer.from(rest.toString("latin1"), "base64") };
  if (["binary", "8bit", "7bit"].includes(encoding)) return { headers, content: rest };
  return "a part has a transfer encoding that is not read";
}

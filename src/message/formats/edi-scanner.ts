/** The separators of one interchange, as bytes. `release` makes the next byte plain; -1 where there is none. */
export interface EdiSyntax {
  readonly component: number;
  readonly element: number;
  readonly release: number;
  readonly terminator: number;
}

/** The longest segment that is taken apart, in bytes: those of an envelope are far shorter. */
export const maxEnvelopeSegment = 4_096;

/** The end of the segment that begins at `from`, its terminator not included; -1 if it never ends. */
export function segmentEnd(bytes: Uint8Array, from: number, { release, terminator }: EdiSyntax): number {
  for (let at = from; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === terminator) return at;
    if (byte === release) at++;
  }
  return -1;
}

/**
 * The elements of a segment, each as its components, release characters taken out. Element 0 is the tag. Reads no further
 * than `maxEnvelopeSegment`.
 */
export function segmentElements(
  bytes: Uint8Array,
  start: number,
  end: number,
  { component, element, release }: EdiSyntax,
  decode: (part: Uint8Array) => string | undefined,
): (readonly (string | undefined)[])[] {
  const elements: (string | undefined)[][] = [[]];
  let part: number[] = [];
  const close = (): void => {
    elements.at(-1)!.push(decode(Uint8Array.from(part)));
    part = [];
  };
  const stop = Math.min(end, start + maxEnvelopeSegment);
  for (let at = start; at < stop; at++) {
    const byte = bytes[at]!;
    if (byte === element || byte === component) {
      close();
      if (byte === element) elements.push([]);
    } else {
      if (byte === release && at + 1 < stop) at++;
      part.push(bytes[at]!);
    }
  }
  close();
  return elements;
}

/** The next byte that is no white space. */
export function skipWhiteSpace(bytes: Uint8Array, from: number): number {
  let at = from;
  while (at < bytes.length && (bytes[at] === 0x20 || (bytes[at]! >= 0x09 && bytes[at]! <= 0x0d))) at++;
  return at;
}

/** Whether these ASCII letters stand at `at`. */
export function startsWith(bytes: Uint8Array, at: number, letters: string): boolean {
  if (at + letters.length > bytes.length) return false;
  for (let i = 0; i < letters.length; i++) if (bytes[at + i] !== letters.charCodeAt(i)) return false;
  return true;
}

import { decodeUtf8 } from "../utf8.ts";

/** The character sets by their EDIFACT names, as labels of `TextDecoder`; the rest is read as ISO 8859-1. */
const labels: Readonly<Record<string, string>> = {
  UNOD: "iso-8859-2",
  UNOE: "iso-8859-5",
  UNOF: "iso-8859-7",
  UNOG: "iso-8859-3",
  UNOH: "iso-8859-4",
  UNOI: "iso-8859-6",
  UNOJ: "iso-8859-8",
};

// What these have beyond ISO 8859-1.
const latin5 = new Map([
  [0xd0, "Ğ"],
  [0xdd, "İ"],
  [0xde, "Ş"],
  [0xf0, "ğ"],
  [0xfd, "ı"],
  [0xfe, "ş"],
]);

/**
 * Decodes by an EDIFACT syntax identifier (UNOA, UNOC, UNOY, …); `undefined` for bytes the character set does not have.
 * UNOA and UNOB, which are ASCII by the book, are read as ISO 8859-1, as partners send them; so is an unknown one: every
 * byte is then one character, and none is lost.
 */
export function edifactDecoder(syntaxIdentifier: string): (bytes: Uint8Array) => string | undefined {
  if (syntaxIdentifier === "UNOY" || syntaxIdentifier === "UNOW") return decodeUtf8;
  // TextDecoder takes "iso-8859-1" and "iso-8859-9" for Windows code pages, which differ.
  const latin1 = (bytes: Uint8Array): string =>
    Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1");
  if (syntaxIdentifier === "UNOK")
    return (bytes) => Array.from(bytes, (b) => latin5.get(b) ?? String.fromCharCode(b)).join("");
  const label = Object.hasOwn(labels, syntaxIdentifier) ? labels[syntaxIdentifier] : undefined;
  if (label === undefined) return latin1;
  const decoder = new TextDecoder(label, { fatal: true });
  return (bytes) => {
    try {
      return decoder.decode(bytes);
    } catch {
      return undefined;
    }
  };
}

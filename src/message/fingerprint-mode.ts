import { InboxError } from "../errors.ts";
import type { FingerprintMode } from "./fingerprint.ts";
import { minimalPointers, parsePointer, pointerTree } from "./json-pointer.ts";
import type { PointerTree } from "./json-pointer.ts";
import { showValue } from "./show-value.ts";

/** How payloads are compared. `except`: JSON pointers (RFC 6901) of parts that may differ between copies of one message. */
export type FingerprintOptions =
  { readonly by: "bytes" } | { readonly by: "json"; readonly except?: readonly string[] | undefined };

/** The longest stored mode, in bytes of UTF-8. */
export const maxModeBytes = 1024;

/**
 * The stored form of the options. The same set of pointers always gives the same mode, in whatever order it was
 * written. Throws `invalid-option`.
 */
export function fingerprintMode(options: FingerprintOptions): FingerprintMode {
  const given: { by?: unknown; except?: unknown } = options ?? {};
  const { by, except } = given;
  if (by === "bytes") {
    if (except === undefined) return "b";
    throw new InboxError(
      "invalid-option",
      'fingerprint.except needs by: "json": bytes have no parts to leave out.',
    );
  }
  if (by !== "json") {
    throw new InboxError("invalid-option", `fingerprint.by must be "bytes" or "json", not ${showValue(by)}.`);
  }
  if (except === undefined) return "j";
  if (!Array.isArray(except)) {
    throw new InboxError(
      "invalid-option",
      `fingerprint.except must be an array of JSON pointers, not ${showValue(except)}.`,
    );
  }
  const pointers = except.map((pointer: unknown, index) => {
    parsePointer(pointer, `fingerprint.except[${index}]`);
    return pointer as string;
  });
  // After ~ a JSON pointer has 0 or 1 only, so ~2 is free to stand for the comma that separates the pointers.
  const mode: FingerprintMode =
    pointers.length === 0
      ? "j"
      : `j-${minimalPointers(pointers)
          .map((p) => p.replaceAll(",", "~2"))
          .join(",")}`;
  if (Buffer.byteLength(mode) > maxModeBytes) {
    throw new InboxError(
      "invalid-option",
      `fingerprint.except is over ${maxModeBytes} bytes together: leave out the parts' common parent.`,
    );
  }
  return mode;
}

/** Reads a stored mode back. `except` is the tree of left-out parts, if any. Throws `invalid-option` for an unknown mode. */
export function parseFingerprintMode(
  mode: string,
): { readonly by: "bytes" } | { readonly by: "json"; readonly except: PointerTree | undefined } {
  if (mode === "b") return { by: "bytes" };
  if (mode === "j") return { by: "json", except: undefined };
  if (!mode.startsWith("j-/")) {
    throw new InboxError("invalid-option", `fingerprint mode ${showValue(mode)} is unknown to this release.`);
  }
  const pointers = mode
    .slice(2)
    .split(",")
    .map((pointer) => pointer.replaceAll("~2", ","));
  return { by: "json", except: pointerTree(pointers, "fingerprint mode") };
}

import type { ShownPayload } from "../quarantine/shown-body.ts";

/** A body as members of a JSON object. */
export function bodyJson(body: ShownPayload): Record<string, unknown> {
  switch (body.kind) {
    case "none":
      return { payload: null };
    case "text":
      return { payload: body.text };
    case "bytes":
      // Bytes that are no text would be changed by any encoding into JSON but this one.
      return { payloadBase64: body.base64 };
    case "hidden":
      return { payloadHidden: true };
  }
}

const shownCharacters = 4_096;

/** A body as a line for people. */
export function bodyLine(body: ShownPayload): string {
  switch (body.kind) {
    case "none":
      return "none (a tombstone)";
    case "text":
      return body.text.length > shownCharacters
        ? `${body.text.slice(0, shownCharacters)}… (${body.bytes} bytes; see --payload)`
        : body.text;
    case "bytes":
      return `${body.bytes} bytes that are no text; see --payload`;
    case "hidden":
      return `hidden: ${body.bytes} bytes in which the parts to hide cannot be found for sure`;
  }
}

/**
 * Arrays travel as one text parameter (`$1::text::uuid[]`), so that every driver sends them alike: drivers differ in
 * how they serialise arrays, none in how they send a string. One parameter an array also keeps far from the 65,535
 * parameters a statement may have.
 */
export function textArray(values: readonly string[]): string {
  let literal = "{";
  // Tenants, producers and modes are mostly those of the one before.
  let last: string | undefined;
  let quoted = "";
  for (let i = 0; i < values.length; i++) {
    const value = values[i] as string;
    if (value !== last) {
      quoted = `"${needsEscape.test(value) ? value.replace(escaped, "\\$&") : value}"`;
      last = value;
    }
    literal += i === 0 ? quoted : `,${quoted}`;
  }
  return literal + "}";
}

/** An array whose values are hex digits, which need no quoting. */
export const hexArray = (values: readonly string[]): string => `{${values.join(",")}}`;

/** A `bytea[]` from hex digits. */
export const byteaArray = (values: readonly string[]): string =>
  values.length === 0 ? "{}" : `{"\\\\x${values.join('","\\\\x')}"}`;

const needsEscape = /["\\]/;
const escaped = /["\\]/g;

/** A `text[]` in which `undefined` is null. */
export const nullableTextArray = (values: readonly (string | undefined)[]): string =>
  values.length === 0
    ? "{}"
    : `{${values.map((value) => (value === undefined ? "NULL" : `"${value.replace(escaped, "\\$&")}"`)).join(",")}}`;

/** A `bytea[]` of bodies. */
export const bodyArray = (bodies: readonly (Uint8Array | null)[]): string =>
  bodies.length === 0
    ? "{}"
    : `{${bodies.map((body) => (body === null ? "NULL" : `"\\\\x${hexOf(body)}"`)).join(",")}}`;

const hexOf = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("hex");

/** An array of whole numbers, given as numbers or as their digits. */
export const numberArray = (values: readonly (number | string)[]): string => `{${values.join(",")}}`;

/** When messages were sent, in whole milliseconds; null where it is not known. */
export const timeArray = (messages: readonly { readonly sentAt?: number | undefined }[]): string =>
  `{${messages.map(({ sentAt }) => sentAt ?? "NULL").join(",")}}`;

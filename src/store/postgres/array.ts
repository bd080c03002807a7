/**
 * Arrays travel as one text parameter (`$1::text::uuid[]`), so that every driver sends them alike: drivers differ in
 * how they serialise arrays, none in how they send a string. One parameter an array also keeps far from the 65,535
 * parameters a statement may have.
 */
export function textArray(values: readonly string[]): string {
  let literal = "{";
  for (let i = 0; i < values.length; i++) {
    const value = values[i] as string;
    literal += i === 0 ? '"' : ',"';
    literal += needsEscape.test(value) ? value.replace(escaped, "\\$&") : value;
    literal += '"';
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

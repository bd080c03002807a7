const zero = 0x30;

/**
 * A JSON number in its canonical text: numbers of the same exact decimal value give the same text, all others give
 * different ones, whatever a double could hold. The form is that of RFC 8785 (JavaScript's), so a number that is
 * written the shortest way reads as `JSON.stringify` would print it. `undefined` for an exponent of more than 15
 * digits: comparing such numbers exactly would take time that does not grow with the text's length alone.
 */
export function canonicalNumber(token: string): string | undefined {
  const negative = token.charCodeAt(0) === 0x2d;
  let mantissaEnd = token.length;
  let exponent = 0;
  const e = token.search(/[eE]/);
  if (e !== -1) mantissaEnd = e;
  const point = token.indexOf(".");
  const whole = token.slice(negative ? 1 : 0, point === -1 ? mantissaEnd : point);
  const all = point === -1 ? whole : whole + token.slice(point + 1, mantissaEnd);

  // No regular expression here: one for trailing zeros takes quadratic time.
  let first = 0;
  while (first < all.length && all.charCodeAt(first) === zero) first++;
  if (first === all.length) return "0";
  let last = all.length;
  while (all.charCodeAt(last - 1) === zero) last--;

  if (e !== -1) {
    const sign = token.charCodeAt(e + 1);
    let start = sign === 0x2b || sign === 0x2d ? e + 2 : e + 1;
    while (token.charCodeAt(start) === zero) start++;
    if (token.length - start > 15) return undefined;
    exponent = Number(token.slice(start)) * (sign === 0x2d ? -1 : 1);
  }

  // The value is 0.DIGITS times ten to the power of `n`.
  const digits = all.slice(first, last);
  const n = whole.length - first + exponent;
  return negative ? `-${print(digits, n)}` : print(digits, n);
}

function print(digits: string, n: number): string {
  const k = digits.length;
  if (n > 0 && n <= 21)
    return k <= n ? digits + "0".repeat(n - k) : `${digits.slice(0, n)}.${digits.slice(n)}`;
  if (n > -6 && n <= 0) return `0.${"0".repeat(-n)}${digits}`;
  const power = n > 0 ? `e+${n - 1}` : `e-${1 - n}`;
  return k === 1 ? digits + power : `${digits[0]}.${digits.slice(1)}${power}`;
}

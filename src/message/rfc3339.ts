const pattern =
  /^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d{1,30}))?(?:[Zz]|([+-])(\d\d):(\d\d))$/;

/** An RFC 3339 timestamp as a Date (fractions cut to milliseconds); `undefined` for anything else. */
export function parseRfc3339(text: string): Date | undefined {
  const match = pattern.exec(text);
  if (match === null) return undefined;
  const month = Number(match[2]);
  const day = Number(match[3]);
  const hour = Number(match[4]);
  const minute = Number(match[5]);
  const second = Number(match[6]);
  const offsetHour = Number(match[9] ?? 0);
  const offsetMinute = Number(match[10] ?? 0);
  // A leap second (60) becomes the next minute's first.
  if (hour > 23 || minute > 59 || second > 60 || offsetHour > 23 || offsetMinute > 59) return undefined;
  const date = new Date(0);
  date.setUTCFullYear(Number(match[1]), month - 1, day);
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return undefined;
  const milliseconds = Number((match[7] ?? "").slice(0, 3).padEnd(3, "0"));
  const offset = (offsetHour * 60 + offsetMinute) * (match[8] === "-" ? -1 : 1);
  date.setUTCHours(hour, minute - offset, second, milliseconds);
  return date;
}

/** A record's place in a log: which log it is, its part, and the offset in it. */
export interface RecordPlace {
  readonly incarnation: string;
  readonly part: string;
  readonly offset: bigint;
}

/** The id of a record that its place tells apart: `INCARNATION/PART/OFFSET`. */
export const recordId = ({ incarnation, part, offset }: RecordPlace): string =>
  `${incarnation}/${part}/${offset}`;

// An offset is a bigint of the database too.
const form = /^(.+)\/(\d{1,10})\/(\d{1,18})$/;

/** The place that an id names; `undefined` for one that is no record's. */
export function recordPlace(id: string): RecordPlace | undefined {
  const [, incarnation, part, offset] = form.exec(id) ?? [];
  if (incarnation === undefined || part === undefined || offset === undefined) return undefined;
  return { incarnation, part, offset: BigInt(offset) };
}

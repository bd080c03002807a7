/**
 * When a message was sent, in whole milliseconds since 1970: as its producer says (`time`) or its broker (`brokerTime`),
 * the earlier where both do, because a producer may date its messages ahead. `undefined`: nobody says.
 */
export function sentAt(time: Date | undefined, brokerTime?: number): number | undefined {
  const own = time?.getTime() ?? Number.NaN;
  const given = brokerTime ?? Number.NaN;
  const earlier = Number.isNaN(own) ? given : Number.isNaN(given) ? own : Math.min(own, given);
  // Nothing was sent before 1970, and a database's calendar begins later than that of `Date`.
  return Number.isFinite(earlier) ? Math.max(0, Math.floor(earlier)) : undefined;
}

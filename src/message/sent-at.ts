/**
 * When a message was sent, in whole milliseconds since 1970: as its producer says (`time`), its broker (`brokerTime`), or
 * its id (`idTime`), the earliest of those that say it, because a producer may date its messages ahead. `undefined`: nobody
 * says.
 */
export function sentAt(time: Date | undefined, brokerTime?: number, idTime?: number): number | undefined {
  const earliest = earlier(earlier(time?.getTime() ?? Number.NaN, brokerTime), idTime);
  // Nothing was sent before 1970, and a database's calendar begins later than that of `Date`.
  return Number.isFinite(earliest) ? Math.max(0, Math.floor(earliest)) : undefined;
}

const earlier = (one: number, other: number | undefined): number =>
  other === undefined || Number.isNaN(other) ? one : Number.isNaN(one) ? other : Math.min(one, other);

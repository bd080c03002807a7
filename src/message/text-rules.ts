/** Text that PostgreSQL can store and UTF-8 can write without changing it: no NUL and no lone surrogate. */
export const isStorableText = (text: string): boolean => text.isWellFormed() && !text.includes("\0");

/**
 * Whether `text` is longer than `limit` bytes of UTF-8. A character takes one to three bytes a UTF-16 unit, so most
 * texts need no counting, and a hostile one of megabytes costs nothing.
 */
export const isLongerThan = (text: string, limit: number): boolean =>
  text.length > limit || (text.length * 3 > limit && Buffer.byteLength(text) > limit);

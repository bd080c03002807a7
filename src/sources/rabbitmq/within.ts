import { InboxError } from "../../errors.ts";

/**
 * The promise's own result, or `source-failed` when it takes longer than `ms` milliseconds. What comes all the same after
 * that is given to `late`.
 */
export async function within<T>(
  promise: Promise<T>,
  ms: number,
  what: string,
  late?: (value: T) => unknown,
): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      const text = `The broker did not answer within ${ms} ms: ${what}.`;
      reject(new InboxError("source-failed", text));
      if (late !== undefined) promise.then(late).catch(() => undefined);
    }, ms);
  });
  try {
    return await Promise.race([promise, over]);
  } finally {
    clearTimeout(timer);
  }
}

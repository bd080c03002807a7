import { InboxError } from "../../errors.ts";

/** The promise's own result, or `source-failed` when it takes longer than `ms` milliseconds. */
export async function within<T>(promise: Promise<T>, ms: number, what: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const text = `The broker did not answer within ${ms} ms: ${what}.`;
    timer = setTimeout(() => reject(new InboxError("source-failed", text)), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** True if the promise is settled within the time, in milliseconds. Rejects as the promise does. */
export async function within(promise: Promise<unknown>, timeoutMs: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => (timer = setTimeout(resolve, timeoutMs, false)));
  const inTime = await Promise.race([promise.then(() => true as const), late]);
  clearTimeout(timer);
  return inTime;
}

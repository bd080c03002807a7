const everyMs = 100;

/**
 * Sends hints at once and then at most every 100 ms, one at a time: a burst of stored messages is one hint, or two. One
 * that fails is missed by nobody for long, for workers look without it.
 */
export function createHinter(send: () => Promise<void>): () => void {
  let busy = false;
  let more = false;

  async function begin(): Promise<void> {
    busy = true;
    await send().catch(() => undefined);
    setTimeout(() => {
      busy = false;
      if (!more) return;
      more = false;
      void begin();
    }, everyMs).unref();
  }

  return () => {
    if (busy) more = true;
    else void begin();
  };
}

/** What has an end: a test's context, or a suite's. */
export interface Scope {
  after(hook: () => Promise<void> | void): void;
}

const stacks = new WeakMap<Scope, (() => Promise<void> | void)[]>();

/** Runs `work` when the test has ended, the last registered first: a pool ends before its schema is dropped. */
export function onTestEnd(t: Scope, work: () => Promise<void> | void): void {
  const known = stacks.get(t);
  if (known !== undefined) {
    known.push(work);
    return;
  }
  const stack = [work];
  stacks.set(t, stack);
  t.after(async () => {
    const errors: unknown[] = [];
    for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
      try {
        await next();
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length === 1) throw errors[0];
    if (errors.length > 1) throw new AggregateError(errors, "Several clean-ups failed");
  });
}

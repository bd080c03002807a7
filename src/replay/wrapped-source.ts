import type { Source } from "../sources/source.ts";

/** A source that does some things in another way; all the rest is the inner one's. */
export const wrappedSource = (source: Source, otherwise: Partial<Source>): Source => ({
  name: source.name,
  start: (intake) => source.start(intake),
  settle: (settlements) => source.settle(settlements),
  stop: () => source.stop(),
  close: () => source.close(),
  ...(source.extend === undefined ? {} : { extend: (deliveries) => source.extend!(deliveries) }),
  ...(source.lag === undefined ? {} : { lag: () => source.lag!() }),
  ...otherwise,
});

import type { Message } from "../../src/index.ts";
import type { Delivery, Settlement, Source } from "../../src/sources/source.ts";
import type { Report, Told } from "./plan.ts";

/** What happens around a settlement. */
export interface Around {
  readonly before: () => Promise<void>;
  readonly during: () => Promise<void>;
}

/** The source, with everything counted that passes between it and the runner. */
export function countingSource(
  source: Source,
  tell: (told: Told) => void,
  idOf: (message: Message) => string,
  around: Around,
): { readonly source: Source; report(): Report } {
  const open = new Set<Delivery>();
  let deliveries = 0;
  let settlements = 0;
  let wrong = 0;
  let bytesInHand = 0;
  let mostInHand = 0;
  let mostBytesInHand = 0;

  const bytesOf = ({ received }: Delivery): number => received.bytes?.byteLength ?? 0;
  const idsOf = (list: readonly Delivery[]): (string | undefined)[] =>
    list.map(({ received }) => ("rejected" in received ? undefined : idOf(received)));

  async function settle(list: readonly (readonly [Delivery, Settlement])[]): Promise<void> {
    for (const [delivery] of list) {
      settlements++;
      if (open.delete(delivery)) bytesInHand -= bytesOf(delivery);
      else wrong++;
    }
    await around.before();
    const settled = source.settle(list);
    // Its failure is the runner's to hear, when this is over.
    settled.catch(() => undefined);
    await around.during();
    await settled;
    tell({ acked: idsOf(list.filter(([, { kind }]) => kind === "ack").map(([delivery]) => delivery)) });
  }

  const { extend, lag } = source;
  return {
    source: {
      ...source,
      name: source.name,
      start: (intake) =>
        source.start({
          ...intake,
          deliver(list) {
            for (const delivery of list) {
              deliveries++;
              if (open.has(delivery)) wrong++;
              else bytesInHand += bytesOf(delivery);
              open.add(delivery);
            }
            mostInHand = Math.max(mostInHand, open.size);
            mostBytesInHand = Math.max(mostBytesInHand, bytesInHand);
            tell({ delivered: idsOf(list) });
            return intake.deliver(list);
          },
        }),
      settle,
      ...(extend === undefined ? {} : { extend: (list) => extend.call(source, list) }),
      ...(lag === undefined ? {} : { lag: () => lag.call(source) }),
    },
    report: () => ({
      ...{ deliveries, settlements, wrong, mostInHand, mostBytesInHand },
      extends: extend !== undefined,
    }),
  };
}

import Table from "cli-table3";
import type { ClientName } from "./job.ts";
import type { Contender } from "./measure.ts";

/** One contender's figures: medians of the rounds, and the most memory of any of them. */
export interface Measured extends Contender {
  /** Deliveries a second. */
  readonly rate: number;
  /** Processor time of the consumer process a delivery, in microseconds. */
  readonly cpuMicros: number;
  readonly maxRssMb: number;
}

export interface Ratios {
  /** The inbox to the best of the same client's levels with one autocommit update a message and no inbox. */
  readonly inboxVsAutocommit: number;
  /** The inbox behind the broker to the inbox without one. */
  readonly inboxVsMemory: number;
  /** The inbox to the client alone, with no handler. */
  readonly inboxVsDrain: number;
}

/** What this project asks of itself; the numbers are goals, not measurements. */
export const bars = { inboxVsAutocommit: 1.5, inboxVsMemory: 0.5, maxRssMb: 300 } as const;

export function ratiosOf(measured: readonly Measured[]): Readonly<Partial<Record<ClientName, Ratios>>> {
  const best = (client: ClientName, way: Contender["way"]): number =>
    Math.max(...measured.filter((one) => one.client === client && one.way === way).map(({ rate }) => rate));
  const clients = new Set(measured.map(({ client }) => client).filter((client) => client !== "memory"));
  const rounded = (value: number): number => Math.round(value * 100) / 100;
  return Object.fromEntries(
    [...clients].map((client) => {
      const inbox = best(client, "inbox");
      return [
        client,
        {
          inboxVsAutocommit: rounded(inbox / best(client, "autocommit")),
          inboxVsMemory: rounded(inbox / best("memory", "inbox")),
          inboxVsDrain: rounded(inbox / best(client, "drain")),
        },
      ];
    }),
  );
}

/** For people: a table of rates, and one of ratios with what is asked of them. */
export function printed(measured: readonly Measured[], backlog: boolean): string {
  const rows = new Table({
    head: ["client", "way", "in hand", "messages/s", "CPU µs each", "most MB"],
    style: { head: [], border: [] },
  });
  for (const { client, way, inHand, rate, cpuMicros, maxRssMb } of measured)
    rows.push([client, way, inHand || "", rate.toLocaleString("en"), cpuMicros, maxRssMb]);
  if (backlog) return `${rows.toString()}\nat most ${bars.maxRssMb} MB are asked for\n`;
  const ratios = new Table({
    head: [
      "client",
      `to autocommit (≥ ${bars.inboxVsAutocommit})`,
      `to no broker (≥ ${bars.inboxVsMemory})`,
      "to drain",
    ],
    style: { head: [], border: [] },
  });
  for (const [client, { inboxVsAutocommit, inboxVsMemory, inboxVsDrain }] of Object.entries(
    ratiosOf(measured),
  ))
    ratios.push([client, inboxVsAutocommit, inboxVsMemory, inboxVsDrain]);
  return `${rows.toString()}\n${ratios.toString()}\n`;
}

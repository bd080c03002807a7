import { subscribe } from "node:diagnostics_channel";

/** What a consumer process tells about one delivery. */
export interface ToldOutcome {
  readonly outcome: string;
}

/** Tells the parent process what becomes of each delivery. The inbox announces it on a diagnostics channel. */
export function tellOutcomes(): void {
  subscribe("transactional-inbox:outcome", (event) => {
    const { outcome } = event as ToldOutcome;
    process.send?.({ outcome } satisfies ToldOutcome);
  });
}

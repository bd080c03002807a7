import { createRelay, type Relay, type RelayOptions } from "../../src/relay/relay.ts";
import type { EffectInput } from "../../src/outbox/effect.ts";
import type { TakenEffect } from "../../src/store/outbox.ts";
import { onTestEnd, type Scope } from "../support/cleanup.ts";
import type { TestOutbox } from "../outbox/support.ts";

export const effect = (id: string, more: Partial<EffectInput> = {}): EffectInput => ({
  id,
  destination: "there",
  payload: `{"id":"${id}"}`,
  ...more,
});

/** An effect as a relay has it in hand, for a destination without a relay. */
export const taken = (more: Partial<TakenEffect> = {}): TakenEffect => ({
  ...{ lease: { lane: 0, token: "1" }, position: "1", attempts: 0, counted: 0, expired: false, waitedMs: 0 },
  ...{ digest: "0".repeat(32), tenant: "", producer: "orders", id: "m1", key: undefined, type: undefined },
  ...{ time: undefined, headers: {}, payload: Buffer.from("{}"), sealed: undefined },
  ...more,
});

/** A relay that is started now and stopped with the test. */
export async function startRelay(
  t: Scope,
  { store }: Pick<TestOutbox, "store">,
  destinations: RelayOptions["destinations"],
  options: Partial<RelayOptions> = {},
): Promise<Relay> {
  const relay = createRelay({ store, destinations, stopTimeoutMs: 2_000, ...options });
  onTestEnd(t, () => relay.stop());
  await relay.start();
  return relay;
}

/** Resolves when `check` holds; rejects after `patienceMs` (20 s) with what it last gave. */
export async function until<T>(
  check: () => Promise<T> | T,
  holds: (value: T) => boolean = Boolean,
  patienceMs = 20_000,
): Promise<T> {
  const deadline = performance.now() + patienceMs;
  for (;;) {
    const value = await check();
    if (holds(value)) return value;
    if (performance.now() > deadline)
      throw new Error(`This did not come true in ${patienceMs} ms: ${JSON.stringify(value)}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** For what waits until a service is back: the pauses that a destination was given meanwhile may be long. */
export const longPatienceMs = 90_000;

/** Something to wait for that a test opens itself. */
export function gate(): { readonly opened: Promise<void>; readonly open: () => void } {
  let open: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open: () => open() };
}

export const networkError = (code: string): Error => Object.assign(new Error(`It failed: ${code}`), { code });

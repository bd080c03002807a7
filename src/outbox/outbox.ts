import { InboxError } from "../errors.ts";
import { maxProducerBytes } from "../message/limits.ts";
import { showValue } from "../message/show-value.ts";
import { isLongerThan, isStorableText } from "../message/text-rules.ts";
import type { NewEffect, OutboxStore } from "../store/outbox.ts";
import type { Store } from "../store/store.ts";
import { checkEffect } from "./check-effect.ts";
import type { EffectInput, SentEffect } from "./effect.ts";

export interface OutboxOptions {
  readonly store: Store;
  /**
   * Who asks for the effects, 1 to 512 bytes: with tenant and id the effect's name, under which the receiving side knows
   * it. Chosen by you and never changed by a refactoring.
   */
  readonly producer: string;
  /** Headers that every effect gets, asked for with each call: trace context. An effect's own go before them. */
  readonly headers?: (() => Readonly<Record<string, string>>) | undefined;
}

export interface Outbox {
  /**
   * Asks for an effect in a transaction that you have open: a client of `pg` on which BEGIN ran, the `sql` of a
   * `sql.begin` callback, or anything with `query` from inside a transaction. If it commits, a relay sends the effect, at
   * least once and under this id; if not, nothing was asked for.
   *
   * Rejects with `effect-conflict` if the id was used at this destination with another payload, with `invalid-effect`,
   * and with `not-a-transaction` before anything is written.
   */
  send(tx: unknown, effect: EffectInput): Promise<SentEffect>;
  /** `send` for many effects in one statement, in their order. If it rejects, roll back: some of them may be stored. */
  sendAll(tx: unknown, effects: readonly EffectInput[]): Promise<readonly SentEffect[]>;
}

/** An outbox over the tables of a store. Throws `invalid-option`. */
export function createOutbox({ store, producer, headers }: OutboxOptions): Outbox {
  if (typeof store?.outbox?.send !== "function") {
    throw new InboxError("invalid-option", "store must be a store, such as postgres(pool).");
  }
  const named =
    typeof producer === "string" &&
    producer !== "" &&
    isStorableText(producer) &&
    !isLongerThan(producer, maxProducerBytes);
  if (!named) {
    throw new InboxError(
      "invalid-option",
      `producer must be a text of 1 to ${maxProducerBytes} bytes without NUL; got ${showValue(producer)}.`,
    );
  }
  const sendAll: Outbox["sendAll"] = async (tx, effects) => {
    const added = headers?.();
    return storeEffects(
      store.outbox,
      tx,
      effects.map((effect) => checkEffect(producer, effect, added)),
    );
  };
  return { sendAll, send: async (tx, effect) => (await sendAll(tx, [effect]))[0]! };
}

/** Stores each effect once; what has the same name and the same payload is one effect. */
async function storeEffects(
  store: OutboxStore,
  tx: unknown,
  effects: readonly NewEffect[],
): Promise<readonly SentEffect[]> {
  const first = new Map<string, NewEffect>();
  for (const effect of effects) {
    const before = first.get(effect.digest);
    if (before === undefined) first.set(effect.digest, effect);
    else if (before.fingerprint !== effect.fingerprint) throw conflict(effect);
  }
  const known = new Map(
    (await store.send(tx, [...first.values()])).map(({ digest, fingerprint }) => [digest, fingerprint]),
  );
  for (const effect of first.values()) {
    const fingerprint = known.get(effect.digest);
    if (fingerprint !== undefined && fingerprint !== effect.fingerprint) throw conflict(effect);
  }
  return effects.map((effect) => ({
    id: effect.id,
    fresh: !known.has(effect.digest) && first.get(effect.digest) === effect,
  }));
}

const conflict = ({ id, destination }: NewEffect): InboxError =>
  new InboxError(
    "effect-conflict",
    `The effect ${showValue(id)} to ${showValue(destination)} was asked for before with another payload. ` +
      "Roll back; give it another id if it is another effect.",
  );

import { InboxError } from "../errors.ts";
import { showValue } from "../message/show-value.ts";
import { checkEffect } from "../outbox/check-effect.ts";
import { derivedEffectId } from "../outbox/effect-id.ts";
import type { EffectInput } from "../outbox/effect.ts";
import type { NewEffect } from "../store/outbox.ts";

/** An effect that a handler asks for; without an id it has one that follows from the message. */
export interface HandlerEffect extends Omit<EffectInput, "id"> {
  /**
   * Default: the digest of the message's identity, and which of the handler's effects without an id this is. So a handler
   * that leaves ids out must ask for its effects in the same order each time. A batch handler must give ids.
   */
  readonly id?: string | undefined;
}

/** The outbox inside a handler: what is asked for is committed with the claim and the handler's work, or not at all. */
export interface HandlerOutbox {
  /**
   * Asks for an effect and returns its id. All of a transaction's effects are stored in one statement when its handlers
   * are done. Throws `invalid-effect`. An id that was used before with another payload rejects the message
   * (`effect-conflict`).
   */
  send(effect: HandlerEffect): string;
}

/** Who asks for a handler's effects. */
export interface OutboxSettings {
  readonly producer: string;
  readonly headers: (() => Readonly<Record<string, string>>) | undefined;
}

/** One handler's outbox. Works until it is sealed. */
export interface SealedOutbox extends HandlerOutbox {
  readonly used: boolean;
  seal(): void;
}

/** The effects of one transaction. */
export interface CollectedEffects {
  /** `index`: the handler's place among those of the transaction. `digest`: of its message; `undefined` for a batch. */
  open(index: number, digest: string | undefined): SealedOutbox;
  any(): boolean;
  /** In the order they were asked for, each once. */
  all(): readonly NewEffect[];
  /** The handler that asked for an effect first. */
  indexOf(digest: string): number | undefined;
}

export function collectEffects({ producer, headers }: OutboxSettings): CollectedEffects {
  const effects = new Map<string, { readonly index: number; readonly effect: NewEffect }>();

  function add(index: number, effect: NewEffect): void {
    const known = effects.get(effect.digest);
    if (known === undefined) effects.set(effect.digest, { index, effect });
    else if (known.effect.fingerprint !== effect.fingerprint) throw effectConflict(effect);
  }

  return {
    open(index, digest) {
      let sealed = false;
      let used = false;
      let unnamed = 0;
      return {
        get used() {
          return used;
        },
        seal: () => void (sealed = true),
        send(given) {
          if (sealed) {
            throw new InboxError("transaction-sealed", "This outbox is over: its handler has settled.");
          }
          const id = given?.id ?? (digest === undefined ? undefined : derivedEffectId(digest, unnamed++));
          if (id === undefined) {
            throw new InboxError("invalid-effect", "A batch handler must give each effect an id.");
          }
          add(index, checkEffect(producer, { ...given, id }, headers?.()));
          used = true;
          return id;
        },
      };
    },
    any: () => effects.size > 0,
    all: () => [...effects.values()].map(({ effect }) => effect),
    indexOf: (digest) => effects.get(digest)?.index,
  };
}

const effectConflict = ({ id, destination }: NewEffect): InboxError =>
  new InboxError(
    "effect-conflict",
    `The effect ${showValue(id)} to ${showValue(destination)} was asked for before with another payload.`,
  );

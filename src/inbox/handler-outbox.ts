import { InboxError } from "../errors.ts";
import { showValue } from "../message/show-value.ts";
import { newEffect, readEffect } from "../outbox/check-effect.ts";
import { derivedEffectId, isDerivedEffectId } from "../outbox/effect-id.ts";
import type { EffectInput } from "../outbox/effect.ts";
import type { AskedEffect, NewEffect } from "../store/outbox.ts";

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
  /** What is to be stored, each effect once. `bundles`: whether effects may be stored as bundles. */
  toStore(bundles: boolean): EffectsToStore;
  /** The handler that asked for an effect first, of those that are stored one by one. */
  indexOf(digest: string): number | undefined;
}

export interface EffectsToStore {
  /** Each of one destination and no more than a row may hold, in the order they were asked for. */
  readonly bundles: readonly (readonly AskedEffect[])[];
  /** In the order they were asked for. */
  readonly single: readonly NewEffect[];
}

interface Asked {
  readonly index: number;
  readonly effect: AskedEffect;
  /** Its id follows from the message. */
  readonly derived: boolean;
}

/** From so many on one row is less work than many, for both sides together. */
const bundleFrom = 16;
const bundleTo = 1_024;
const bundleBytes = 4 * 1024 * 1024;

export function collectEffects({ producer, headers }: OutboxSettings): CollectedEffects {
  const asked: Asked[] = [];
  const named = new Map<string, { readonly index: number; readonly effect: NewEffect }>();
  // Ids that follow from messages are each other's equal only if somebody wrote one by hand.
  let handWritten = false;

  /** False: it is the same as one that was asked for before. Throws `effect-conflict`. */
  function name(index: number, effect: NewEffect): boolean {
    const known = named.get(effect.digest);
    if (known !== undefined && known.effect.fingerprint !== effect.fingerprint) throw effectConflict(effect);
    if (known === undefined) named.set(effect.digest, { index, effect });
    return known === undefined;
  }

  function add(one: Asked): void {
    if (!one.derived && !handWritten && isDerivedEffectId(one.effect.id)) {
      handWritten = true;
      for (const { index, effect, derived } of asked) if (derived) name(index, newEffect(effect));
    }
    if (!one.derived || handWritten) {
      const effect = newEffect(one.effect);
      if (!name(one.index, effect)) return;
      asked.push({ ...one, effect });
    } else asked.push(one);
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
          const own = given?.id;
          const id = own ?? (digest === undefined ? undefined : derivedEffectId(digest, unnamed++));
          if (id === undefined) {
            throw new InboxError("invalid-effect", "A batch handler must give each effect an id.");
          }
          const effect = readEffect(producer, id, given, headers?.());
          add({ index, effect, derived: own === undefined || own === null });
          used = true;
          return id;
        },
      };
    },
    any: () => asked.length > 0,
    toStore(mayBundle) {
      const singles = new Set(mayBundle && !handWritten ? singleDestinations(asked) : destinationsOf(asked));
      const single: NewEffect[] = [];
      const bundles = new Map<string, AskedEffect[]>();
      const full: AskedEffect[][] = [];
      let bytes = 0;
      for (const { index, effect } of asked) {
        const { destination, payload } = effect;
        if (singles.has(destination)) {
          const whole = isNamed(effect) ? effect : newEffect(effect);
          if (!isNamed(effect)) name(index, whole);
          single.push(whole);
          continue;
        }
        const size = 64 + effect.id.length + (payload?.length ?? 0);
        const bundle = bundles.get(destination);
        if (bundle === undefined || bundle.length >= bundleTo || bytes + size > bundleBytes) {
          const fresh = [effect];
          bundles.set(destination, fresh);
          full.push(fresh);
          bytes = size;
        } else {
          bundle.push(effect);
          bytes += size;
        }
      }
      return { bundles: full, single };
    },
    indexOf: (digest) => named.get(digest)?.index,
  };
}

const isNamed = (effect: AskedEffect): effect is NewEffect => "digest" in effect;

const destinationsOf = (asked: readonly Asked[]): readonly string[] =>
  asked.map(({ effect }) => effect.destination);

/** Destinations with an effect that cannot be in a bundle, or too few: all of theirs are stored alike, for their order. */
function singleDestinations(asked: readonly Asked[]): readonly string[] {
  const sizes = new Map<string, number>();
  for (const { effect, derived } of asked) {
    const { destination, delayMs, lifetimeMs } = effect;
    const bundled = derived && delayMs === undefined && lifetimeMs === undefined;
    sizes.set(destination, bundled ? (sizes.get(destination) ?? 0) + 1 : Number.NEGATIVE_INFINITY);
  }
  return [...sizes].filter(([, size]) => size < bundleFrom).map(([destination]) => destination);
}

const effectConflict = ({ id, destination }: NewEffect): InboxError =>
  new InboxError(
    "effect-conflict",
    `The effect ${showValue(id)} to ${showValue(destination)} was asked for before with another payload.`,
  );

import { InboxError } from "../errors.ts";
import { maxConsumerBytes } from "../message/limits.ts";
import { showValue } from "../message/show-value.ts";
import { isLongerThan, isStorableText } from "../message/text-rules.ts";
import { identityDigest } from "../message/identity.ts";
import type { Identity } from "../message/message.ts";
import { wholeNumber } from "../whole-number.ts";

/** What becomes of effects that a handler asks for during a replay. `refuse`: the replay ends at the first one. */
export type ReplayEffects = "refuse" | "drop" | "send";

/** A read model built from the same messages beside the original, under a name of its own. Effects are never sent. */
export interface RebuildPolicy {
  readonly kind: "rebuild";
  /** The original consumer, which stays as it is. */
  readonly of: string;
  /** The name under which messages are taken; another one than the original's. */
  readonly consumer: string;
  /** Default `refuse`. `drop`: what the handler asks for is counted and not sent. */
  readonly effects?: "refuse" | "drop" | undefined;
}

/** The next version of a projection, which takes over from the one before when it has caught up. */
export interface ProjectionPolicy {
  readonly kind: "projection";
  readonly name: string;
  readonly version: number;
  /** The consumer it takes over from. Default: the version before, and none for version 1. */
  readonly of?: string | undefined;
  /** Default `refuse`. `drop`: what the handler asks for is counted and not sent, for the old version has sent it. */
  readonly effects?: "refuse" | "drop" | undefined;
}

/**
 * A correction of what a consumer has applied: one transition for each (migration, message), by a handler of its own.
 * Only messages are taken that the original has applied, with the payload that it has applied.
 */
export interface CompensatePolicy {
  readonly kind: "compensate";
  /** The consumer whose effects are corrected. */
  readonly of: string;
  /** Names the correction, without `#`. The same message is corrected once for each name. */
  readonly migration: string;
  /** Only what these handler versions of the original have applied. Default: all. */
  readonly appliedBy?: readonly string[] | undefined;
  /** Default `refuse`. `send`: effects of the correction itself, such as a refund, are asked for. */
  readonly effects?: ReplayEffects | undefined;
}

/** How messages may be handled again. There is no default: each has other consequences. */
export type ReplayPolicy = RebuildPolicy | ProjectionPolicy | CompensatePolicy;

/** A policy, checked, with its defaults. */
export interface ReplayTarget {
  readonly kind: ReplayPolicy["kind"];
  /** The name under which messages are taken. */
  readonly consumer: string;
  readonly of: string | undefined;
  readonly effects: ReplayEffects;
  readonly appliedBy: readonly string[] | undefined;
}

/**
 * The consumer's name of one version of a projection: `createInbox({ consumer: projection("balances", 3) })`. Each version
 * takes every message once. Throws `invalid-option`.
 */
export function projection(name: string, version: number): string {
  checkText("projection", name);
  return checkedConsumer(
    `${name}@${wholeNumber("version", version, Number.NaN, 1, 2_147_483_647)}`,
    "A projection's name",
  );
}

/** The consumer's name of a correction: another one for each original and migration. Throws `invalid-option`. */
export function migrationConsumer(of: string, migration: string): string {
  checkText("of", of);
  checkText("migration", migration);
  // The last "#" tells where the migration begins, so that no two pairs have one name.
  if (migration.includes("#")) refuseOption("migration must be a text without #", migration);
  return checkedConsumer(`${of}#${migration}`, "The names of the original and of the migration");
}

/**
 * The id of the operation that corrects a message, as 32 hex digits: follows from (original, migration, message), for a
 * handler that needs a name for what it does. It is the key of the ledger, too.
 */
export const operationId = (
  { of, migration }: Pick<CompensatePolicy, "of" | "migration">,
  message: Identity,
): string => identityDigest(migrationConsumer(of, migration), message);

/** Checks a policy. Throws `replay-refused` where there is none, `invalid-option` for one that breaks a rule. */
export function replayTarget(policy: ReplayPolicy): ReplayTarget {
  const kind: unknown = (policy as { kind?: unknown } | undefined)?.kind;
  switch (kind) {
    case "rebuild": {
      const { of, consumer, effects } = policy as RebuildPolicy;
      checkText("of", of);
      checkText("consumer", consumer);
      return ofItsOwn({
        ...{ kind, of, consumer: checkedConsumer(consumer, "A consumer's name"), appliedBy: undefined },
        effects: effectsOf(effects, ["refuse", "drop"]),
      });
    }
    case "projection": {
      const { name, version, of, effects } = policy as ProjectionPolicy;
      const consumer = projection(name, version);
      if (of !== undefined) checkText("of", of);
      return ofItsOwn({
        ...{ kind, consumer, appliedBy: undefined },
        of: of ?? (version > 1 ? projection(name, version - 1) : undefined),
        effects: effectsOf(effects, ["refuse", "drop"]),
      });
    }
    case "compensate": {
      const { of, migration, appliedBy, effects } = policy as CompensatePolicy;
      const consumer = migrationConsumer(of, migration);
      if (appliedBy !== undefined && !isListOfTexts(appliedBy))
        refuseOption("appliedBy must be a list of one or more handler versions", appliedBy);
      return { kind, consumer, of, appliedBy, effects: effectsOf(effects, ["refuse", "drop", "send"]) };
    }
    default:
      throw new InboxError(
        "replay-refused",
        `A replay needs a policy: rebuild, projection or compensate; got ${showValue(kind)}.`,
      );
  }
}

/** Under the original's name everything is a duplicate, and the only way to run it again would be to forget it. */
function ofItsOwn(target: ReplayTarget): ReplayTarget {
  if (target.consumer !== target.of) return target;
  throw new InboxError(
    "replay-refused",
    `${showValue(target.consumer)} has applied these messages, and applies none of them twice. Choose a name of its own for the ${target.kind}; to correct what was applied, choose compensate.`,
  );
}

function effectsOf(given: unknown, allowed: readonly ReplayEffects[]): ReplayEffects {
  const effects = given ?? "refuse";
  if (allowed.includes(effects as ReplayEffects)) return effects as ReplayEffects;
  return refuseOption(`effects must be one of ${allowed.join(", ")} under this policy`, effects);
}

const isListOfTexts = (list: unknown): list is readonly string[] =>
  Array.isArray(list) && list.length > 0 && list.every((one) => typeof one === "string" && one !== "");

function checkText(field: string, value: unknown): void {
  if (typeof value === "string" && value !== "" && isStorableText(value)) return;
  refuseOption(`${field} must be a text without NUL`, value);
}

function checkedConsumer(consumer: string, what: string): string {
  if (!isLongerThan(consumer, maxConsumerBytes)) return consumer;
  throw new InboxError(
    "invalid-option",
    `${what} may take ${maxConsumerBytes} bytes: ${showValue(consumer)} is longer.`,
  );
}

function refuseOption(rule: string, value: unknown): never {
  throw new InboxError("invalid-option", `${rule}; got ${showValue(value)}.`);
}

import { hasCode, InboxError } from "../errors.ts";
import type { FingerprintMode } from "../message/fingerprint.ts";
import {
  isRejected,
  type Identity,
  type Message,
  type Received,
  type RejectedMessage,
} from "../message/message.ts";
import { sentAt } from "../message/sent-at.ts";
import { validateData } from "../message/schema.ts";
import { withData } from "../message/create-message.ts";
import type { Seen } from "../store/store.ts";
import { telemetry } from "../telemetry/channels.ts";
import { announce } from "./announce.ts";
import { quarantineDoubtful, quarantineItem } from "./fail.ts";
import type { Item } from "./item.ts";
import { judgeSeen } from "./judge-seen.ts";
import type { LaneContext } from "./lane-context.ts";
import type { Outcome, Processed } from "./outcome.ts";
import { storedMessage } from "./put-off.ts";
import { quarantineReceived } from "./quarantine-received.ts";

/** The answer inside a transaction of yours. `applied` is true once you commit. */
export interface JoinedResult<Result> {
  readonly outcome: Extract<Outcome, "applied" | "duplicate" | "stored" | "conflict" | "rejected" | "late">;
  /** What `work` returned, if it ran. */
  readonly result?: Result | undefined;
  readonly error?: Error | undefined;
}

/**
 * The claim inside somebody else's transaction. Bodies that cannot be applied go to quarantine on a connection of the
 * store's own, so they stay whether the caller commits or not. Not retried: the transaction is the caller's.
 */
export async function processInTransaction<Result>(
  context: LaneContext,
  mode: FingerprintMode,
  digestOf: (identity: Identity) => string,
  given: unknown,
  received: Received,
  work: (message: Message) => Promise<Result> | Result,
): Promise<JoinedResult<Result>> {
  const { claimLockTimeoutMs } = context.settings;
  const joined = context.store.join(context.name, given, claimLockTimeoutMs, "processInTransaction");
  await joined.prove();
  if (isRejected(received)) return kept(await quarantineReceived(context, received));

  const item = itemOf(context, received, mode, digestOf);
  const announced = (result: JoinedResult<Result>): JoinedResult<Result> => {
    if (telemetry.outcome.hasSubscribers) {
      const { outcome, error } = result;
      telemetry.outcome.publish({ consumer: context.name.consumer, message: received, outcome, error });
    }
    return result;
  };
  let message = received;
  if (context.payloadSchema !== undefined) {
    const validation = await validateData(context.payloadSchema, received);
    if (!validation.ok) {
      const { error } = validation;
      return announced(
        kept(await answerOf(item, (own) => quarantineItem(context, own, error.code, error, 1))),
      );
    }
    message = withData(received, validation.data);
  }
  const { notNew, keysParked } = await orBusy(joined.claim([item]));
  const [met] = notNew;
  if (met === undefined) {
    const { key } = message;
    const follows = keysParked && key !== undefined && context.settings.order !== "skip";
    if (follows && (await joined.parkedKeys([key])).has(key)) {
      await joined.storeBehind([storedMessage(item)]);
      return announced({ outcome: "stored" });
    }
    const result = await work(message);
    return announced({ outcome: "applied", result });
  }
  const judgement = judgeSeen(item, met);
  if (judgement === "gone") throw takenBack();
  if (judgement !== "conflict" && judgement !== "late") return announced({ outcome: judgement });
  const doubt = judgement;
  return announced(kept(await answerOf(item, (own) => quarantineDoubtful(context, { item: own, doubt }))));
}

/**
 * Identity and body of messages in somebody else's transaction. Those that are no message, or in conflict, go to quarantine
 * on a connection of the store's own, so they stay whether the caller commits or not.
 */
export async function acceptInTransaction(
  context: LaneContext,
  mode: FingerprintMode,
  digestOf: (identity: Identity) => string,
  given: unknown,
  list: readonly Received[],
): Promise<JoinedResult<never>[]> {
  const { claimLockTimeoutMs } = context.settings;
  const joined = context.store.join(context.name, given, claimLockTimeoutMs, "acceptInTransaction");
  await joined.prove();
  const items = list.map((received): RejectedMessage | Item =>
    isRejected(received) ? received : itemOf(context, received, mode, digestOf),
  );
  const first = new Map<string, Item>();
  for (const item of items) if ("digest" in item && !first.has(item.digest)) first.set(item.digest, item);
  const notNew = first.size === 0 ? [] : await orBusy(joined.accept([...first.values()].map(storedMessage)));
  const met = new Map(notNew.map((one) => [one.digest, one]));
  const results: JoinedResult<never>[] = [];
  for (const item of items) {
    results.push("digest" in item ? await judged(item) : kept(await quarantineReceived(context, item)));
  }
  return results;

  async function judged(item: Item): Promise<JoinedResult<never>> {
    const known = met.get(item.digest);
    const isNew = known === undefined;
    const leader = first.get(item.digest) as Item;
    const judgement = judgeSeen(
      item,
      known ?? { seen: { ...seenOf(leader), processed: false }, late: false },
    );
    if (judgement === "gone") throw takenBack();
    if (judgement === "conflict" && isNew) {
      // Quarantine would wait for this very transaction.
      const text = `Two messages of one call have the id ${JSON.stringify(item.id)} and different payloads. Roll back.`;
      throw new InboxError("payload-conflict", text);
    }
    const result =
      judgement === "conflict" || judgement === "late"
        ? kept(await answerOf(item, (own) => quarantineDoubtful(context, { item: own, doubt: judgement })))
        : { outcome: judgement };
    announce(context.name, item.message, { ...result, settle: "ack" });
    return result;
  }
}

const seenOf = ({ tenant, producer, id, fingerprint }: Item): Omit<Seen, "processed"> => ({
  ...{ tenant, producer, id },
  fingerprint: fingerprint.digest,
  fingerprintMode: fingerprint.mode,
});

const takenBack = (): InboxError =>
  new InboxError("busy", "The claim of this message was taken back meanwhile. Roll back and try again.");

/** A claim that waited for another transaction for as long as it may. */
async function orBusy<T>(claim: Promise<T>): Promise<T> {
  try {
    return await claim;
  } catch (error) {
    if (!hasCode(error, "55P03")) throw error;
    const text = "Another transaction holds the claim of this message. Roll back and try again.";
    throw new InboxError("busy", text, { cause: error });
  }
}

const itemOf = (
  { settings }: LaneContext,
  message: Message,
  mode: FingerprintMode,
  digestOf: (identity: Identity) => string,
): Item => ({
  message,
  digest: digestOf(message),
  tenant: message.tenant,
  producer: message.producer,
  id: message.id,
  fingerprint: message.fingerprint(mode),
  sentAt: sentAt(message.time, undefined, settings.idTimeOf?.(message.id)),
  handler: () => undefined,
  redelivered: false,
  pending: undefined,
  conflicts: 0,
  deferrals: 0,
  processed: undefined,
  onSettled: () => undefined,
});

/** Runs what settles an item, and gives its answer. */
async function answerOf(item: Item, use: (item: Item) => Promise<void>): Promise<Processed> {
  let answer: Processed | undefined;
  await use({ ...item, onSettled: (processed) => (answer = processed) });
  if (answer === undefined) throw new Error("A message was left without an outcome.");
  return answer;
}

/** What is kept may be acknowledged; what could not be kept must not look like it. */
function kept(processed: Processed): JoinedResult<never> {
  const { outcome, error } = processed;
  if (outcome !== "applied" && outcome !== "superseded" && outcome !== "busy" && outcome !== "failed") {
    return { outcome, error };
  }
  throw error ?? new InboxError("store-unavailable", "The message could not be kept in quarantine.");
}

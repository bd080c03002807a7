import { hasCode, InboxError } from "../errors.ts";
import type { FingerprintMode } from "../message/fingerprint.ts";
import { isRejected, type Identity, type Message, type Received } from "../message/message.ts";
import { validateData } from "../message/schema.ts";
import { withData } from "../message/create-message.ts";
import { telemetry } from "../telemetry/channels.ts";
import { quarantineConflict, quarantineItem } from "./fail.ts";
import type { Item } from "./item.ts";
import { judgeSeen } from "./judge-seen.ts";
import type { LaneContext } from "./lane-context.ts";
import type { Outcome, Processed } from "./outcome.ts";
import { quarantineReceived } from "./quarantine-received.ts";

/** The answer inside a transaction of yours. `applied` is true once you commit. */
export interface JoinedResult<Result> {
  readonly outcome: Extract<Outcome, "applied" | "duplicate" | "stored" | "conflict" | "rejected">;
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
  const joined = context.store.join(context.name, given, context.settings.claimLockTimeoutMs);
  await joined.prove();
  if (isRejected(received)) return kept(await quarantineReceived(context, received));

  const item = itemOf(received, mode, digestOf);
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
  let notNew;
  try {
    ({ notNew } = await joined.claim([item]));
  } catch (error) {
    if (!hasCode(error, "55P03")) throw error;
    throw new InboxError(
      "busy",
      "Another transaction holds the claim of this message. Roll back and try again.",
      {
        cause: error,
      },
    );
  }
  const [met] = notNew;
  if (met === undefined) {
    const result = await work(message);
    return announced({ outcome: "applied", result });
  }
  const judgement = judgeSeen(item, met.seen);
  if (judgement === "gone") {
    throw new InboxError(
      "busy",
      "The claim of this message was taken back meanwhile. Roll back and try again.",
    );
  }
  if (judgement !== "conflict") return announced({ outcome: judgement });
  return announced(kept(await answerOf(item, (own) => quarantineConflict(context, own))));
}

const itemOf = (message: Message, mode: FingerprintMode, digestOf: (identity: Identity) => string): Item => ({
  message,
  digest: digestOf(message),
  tenant: message.tenant,
  producer: message.producer,
  id: message.id,
  fingerprint: message.fingerprint(mode),
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
  if (outcome === "conflict" || outcome === "rejected" || outcome === "duplicate" || outcome === "stored") {
    return { outcome, error };
  }
  throw error ?? new InboxError("store-unavailable", "The message could not be kept in quarantine.");
}

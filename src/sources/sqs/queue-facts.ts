import { InboxError } from "../../errors.ts";
import type { SqsApi } from "./client.ts";
import { errorAdvice, errorName, isDenied } from "./sdk-error.ts";

/** What the source needs to know of its queue. */
export interface QueueFacts {
  /** How long SQS leaves a message with who received it, in milliseconds. */
  readonly visibilityTimeoutMs: number;
  /** Whether each receive must name the timeout, because it is not the queue's own. */
  readonly nameTimeout: boolean;
  /** How long the queue keeps a message, in milliseconds; `undefined` where that may not be asked. */
  readonly retentionMs: number | undefined;
}

const defaultTimeoutMs = 30_000;
// Deliveries are not attempts: each restart, each kill and each lost request counts as one.
const fewDeliveries = 10;

/**
 * Asks the queue once, before anything is received. Throws `source-failed` where it is not there or cannot be reached.
 */
export async function readQueueFacts(
  api: SqsApi,
  sourceName: string,
  wantedTimeoutMs: number | undefined,
  warn: (message: string) => void,
): Promise<QueueFacts> {
  let attributes: Readonly<Record<string, string>>;
  try {
    attributes = await api.attributes(["VisibilityTimeout", "RedrivePolicy", "MessageRetentionPeriod"]);
  } catch (error) {
    const name = errorName(error);
    if (!isDenied(name)) {
      throw new InboxError("source-failed", `${sourceName} cannot be received from: ${errorAdvice(name)}.`);
    }
    warn(
      "sqs:GetQueueAttributes is not allowed: messages are received with visibilityTimeoutMs, lag is not known, " +
        "and a dead-letter queue is not checked",
    );
    return {
      visibilityTimeoutMs: wantedTimeoutMs ?? defaultTimeoutMs,
      nameTimeout: true,
      retentionMs: undefined,
    };
  }
  const deliveries = maxReceiveCount(attributes["RedrivePolicy"]);
  if (deliveries !== undefined && deliveries < fewDeliveries) {
    warn(
      `the queue moves a message to its dead-letter queue after ${deliveries} deliveries, and each restart of a consumer ` +
        `may count as one: good messages may end there unapplied. Set maxReceiveCount to ${fewDeliveries} or more; ` +
        "what cannot be handled is in the inbox's quarantine",
    );
  }
  const own = Number(attributes["VisibilityTimeout"]) * 1_000;
  const kept = Number(attributes["MessageRetentionPeriod"]) * 1_000;
  const retentionMs = kept > 0 ? kept : undefined;
  if (wantedTimeoutMs !== undefined) {
    return { visibilityTimeoutMs: wantedTimeoutMs, nameTimeout: wantedTimeoutMs !== own, retentionMs };
  }
  // A timeout of 0 would hand each message over again at once.
  if (!Number.isFinite(own) || own < 1_000)
    return { visibilityTimeoutMs: defaultTimeoutMs, nameTimeout: true, retentionMs };
  return { visibilityTimeoutMs: own, nameTimeout: false, retentionMs };
}

function maxReceiveCount(policy: string | undefined): number | undefined {
  if (policy === undefined || policy === "") return undefined;
  try {
    const count = Number((JSON.parse(policy) as { maxReceiveCount?: unknown } | null)?.maxReceiveCount);
    return Number.isFinite(count) ? count : undefined;
  } catch {
    return undefined;
  }
}

import { InboxError } from "../../errors.ts";
import { showValue } from "../../message/show-value.ts";

export interface CursorOptions {
  /** The topics' ids, by name, for a client that cannot tell them (kafkajs). Where the client tells another one, nothing is read. */
  readonly topicIds?: Readonly<Record<string, string>> | undefined;
  /** The cluster's id, for a client that cannot tell it (confluent). Default: left out, topic ids tell logs apart. */
  readonly clusterId?: string | undefined;
  /**
   * What you agree to, as the error says it: the id of a topic that was made anew, or `TOPIC-ID/PARTITION@OFFSET` for a
   * partition that lost its end. It holds once and may stay.
   */
  readonly accept?: string | readonly string[] | undefined;
}

/** What `cursor()` makes: records are told apart by their place in the log. */
export interface CursorStrategy {
  readonly strategy: "cursor";
  readonly topicIds: ReadonlyMap<string, string>;
  readonly clusterId: string | undefined;
  readonly accept: readonly string[];
}

/**
 * Instead of an id in each record: how far each partition is applied, in one row, moved in the transaction of the effect.
 * Protects against redelivery of the same log, and against nothing else: what a producer sends twice is two records. Throws
 * `invalid-option`.
 */
export function cursor(options: CursorOptions = {}): CursorStrategy {
  const { topicIds = {}, clusterId, accept = [] } = options;
  const list = typeof accept === "string" ? [accept] : accept;
  if (!Array.isArray(list) || !list.every((one) => typeof one === "string" && one !== ""))
    refuse("accept must be a text or a list of texts", accept);
  if (typeof topicIds !== "object" || topicIds === null)
    refuse("topicIds must be an object of topic ids by topic", topicIds);
  for (const [topic, id] of Object.entries(topicIds as Record<string, unknown>))
    if (typeof id !== "string" || !idForm.test(id)) refuse(`topicIds.${topic} must be a topic's id`, id);
  if (clusterId !== undefined && (typeof clusterId !== "string" || !idForm.test(clusterId)))
    refuse("clusterId must be a cluster's id", clusterId);
  const ids = Object.entries(topicIds).map(([topic, id]) => [topic, topicIdText(id)] as const);
  return { strategy: "cursor", topicIds: new Map(ids), clusterId, accept: list as readonly string[] };
}

export const isCursor = (identity: unknown): identity is CursorStrategy =>
  typeof identity === "object" &&
  identity !== null &&
  (identity as { readonly strategy?: unknown }).strategy === "cursor";

const idForm = /^[A-Za-z0-9+/_=-]{1,100}$/;
const uuidForm = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** A topic's id as Kafka's own tools print it, from the forms that clients give it in. */
export const topicIdText = (id: string): string =>
  uuidForm.test(id)
    ? Buffer.from(id.replaceAll("-", ""), "hex").toString("base64url")
    : id.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");

function refuse(rule: string, value: unknown): never {
  throw new InboxError("invalid-option", `cursor: ${rule}; got ${showValue(value)}.`);
}

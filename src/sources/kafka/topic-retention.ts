/** A topic's configuration by name, the broker's defaults included. */
export type TopicConfig = Readonly<Record<string, string | undefined>>;

/**
 * How long Kafka keeps a topic's records, in milliseconds; `Infinity` for ever, as a compacted topic is; `undefined` where
 * the configuration does not say. Kafka deletes whole segments: a record goes when the newest one of its segment is old
 * enough, and a segment may be filled for `segment.ms`. What `retention.bytes` deletes earlier is not counted on.
 */
export function topicRetentionMs(config: TopicConfig): number | undefined {
  const policy = config["cleanup.policy"];
  const deletes = policy === undefined || policy.split(",").some((part) => part.trim() === "delete");
  if (!deletes) return Number.POSITIVE_INFINITY;
  const retention = numberOf(config["retention.ms"]);
  if (retention === undefined || retention < 0)
    return retention === undefined ? undefined : Number.POSITIVE_INFINITY;
  const segment = numberOf(config["segment.ms"]);
  return segment === undefined ? undefined : retention + segment;
}

const numberOf = (text: string | undefined): number | undefined =>
  text !== undefined && /^-?\d{1,19}$/.test(text) ? Number(text) : undefined;

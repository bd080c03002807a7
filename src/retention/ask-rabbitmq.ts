import { InboxError } from "../errors.ts";
import { property, propertyText } from "../message/formats/property.ts";
import { askApi, type Management } from "../sources/rabbitmq/management.ts";
import type { BrokerFacts, DeadLetterFacts } from "./facts.ts";

const defaultAcknowledgementTimeoutMs = 1_800_000;

/**
 * What RabbitMQ keeps of a queue, by its arguments and policies: time to live, or a stream's age, and the same of the
 * queues that its dead letters are routed to. Rejects with `source-failed` where the management API cannot be asked.
 */
export async function askRabbitmq(management: Management, queue: string): Promise<BrokerFacts> {
  const vhost = encodeURIComponent(management.vhost ?? "/");
  const told = await queueOf(management, vhost, queue);
  const timeouts = limitsOf(told, "consumer-timeout");
  return {
    name: `rabbitmq:${queue}`,
    kind: isStream(told) ? "log" : "queue",
    retentionMs: retentionOf(told),
    redeliverAfterMs: timeouts.length > 0 ? Math.min(...timeouts) : defaultAcknowledgementTimeoutMs,
    deadLetter: await deadLetterOf(management, vhost, queue, told),
  };
}

const queueOf = (management: Management, vhost: string, queue: string): Promise<unknown> =>
  askApi(management, `api/queues/${vhost}/${encodeURIComponent(queue)}`);

async function deadLetterOf(
  management: Management,
  vhost: string,
  queue: string,
  told: unknown,
): Promise<DeadLetterFacts | undefined> {
  const exchange = settingsOf(told, "dead-letter-exchange").find((value) => typeof value === "string");
  if (typeof exchange !== "string") return undefined;
  const key = settingsOf(told, "dead-letter-routing-key").find((value) => typeof value === "string");
  const names =
    exchange === "" ? [typeof key === "string" ? key : queue] : await boundTo(management, vhost, exchange);
  // Dead letters that are routed nowhere are dropped.
  if (names.length === 0) return undefined;
  const retentions: number[] = [];
  for (const name of names) retentions.push(retentionOf(await queueOf(management, vhost, name)));
  return {
    name: `rabbitmq:${names.join(", ")}`,
    retentionMs: Math.max(...retentions),
    startsAnew: true,
  };
}

/** All queues that the exchange leads to, whatever the routing key: which one a dead letter has is not known. */
async function boundTo(management: Management, vhost: string, exchange: string): Promise<readonly string[]> {
  const names = new Set<string>();
  const seen = new Set<string>();
  const waiting = [exchange];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (seen.has(next)) continue;
    seen.add(next);
    const bindings = await askApi(
      management,
      `api/exchanges/${vhost}/${encodeURIComponent(next)}/bindings/source`,
    );
    if (!Array.isArray(bindings)) {
      throw new InboxError(
        "source-failed",
        `The management API does not tell the bindings of exchange ${next}.`,
      );
    }
    for (const binding of bindings as readonly unknown[]) {
      const destination = propertyText(binding, "destination");
      if (destination === undefined) continue;
      if (property(binding, "destination_type") === "exchange") waiting.push(destination);
      else names.add(destination);
    }
  }
  return [...names].sort();
}

const isStream = (told: unknown): boolean =>
  (property(told, "type") ?? property(property(told, "arguments"), "x-queue-type")) === "stream";

/** Where argument and policy both say something, the smaller one holds. */
function retentionOf(told: unknown): number {
  if (!isStream(told)) return Math.min(Number.POSITIVE_INFINITY, ...limitsOf(told, "message-ttl"));
  const ages = settingsOf(told, "max-age").map(ageOf);
  return Math.min(Number.POSITIVE_INFINITY, ...ages);
}

/** What the queue's arguments (`x-…`) and its effective policy say under a name. */
const settingsOf = (told: unknown, name: string): readonly unknown[] =>
  [
    property(property(told, "arguments"), `x-${name}`),
    property(property(told, "effective_policy_definition"), name),
  ].filter((value) => value !== undefined && value !== null);

const limitsOf = (told: unknown, name: string): readonly number[] =>
  settingsOf(told, name).filter((value): value is number => typeof value === "number" && value >= 0);

const ageUnits: Readonly<Record<string, number>> = {
  ...{ Y: 365 * 86_400_000, M: 30 * 86_400_000, D: 86_400_000, h: 3_600_000, m: 60_000, s: 1_000 },
};

/** RabbitMQ's notation of a stream's age: `7D`. */
function ageOf(value: unknown): number {
  const [, digits, unit = ""] = (typeof value === "string" ? /^(\d+)([YMDhms])$/.exec(value) : null) ?? [];
  return digits === undefined ? Number.POSITIVE_INFINITY : Number(digits) * (ageUnits[unit] ?? Number.NaN);
}

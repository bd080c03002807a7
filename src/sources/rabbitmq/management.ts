import { InboxError } from "../../errors.ts";
import { property } from "../../message/formats/property.ts";
import type { QueueFacts } from "./queue-facts.ts";

/** Where the management plugin answers. Asked once, when the source starts. */
export interface Management {
  /** `"http://localhost:15672"`. Without credentials: give those beside it. */
  readonly url: string;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  /** The queue's virtual host. Default `"/"`. */
  readonly vhost?: string | undefined;
  /** Default: the global `fetch`. Your own for a private certificate authority or a proxy. */
  readonly fetch?: typeof globalThis.fetch | undefined;
  /** How long to wait for an answer, in milliseconds. Default 5,000. */
  readonly timeoutMs?: number | undefined;
}

/** What the broker says of a queue. Rejects where it cannot be asked; the text holds no credentials. */
export async function askManagement(management: Management, queue: string): Promise<QueueFacts> {
  const vhost = encodeURIComponent(management.vhost ?? "/");
  const [told, overview] = await Promise.all([
    askApi(management, `api/queues/${vhost}/${encodeURIComponent(queue)}`),
    askApi(management, "api/overview"),
  ]);
  const args = property(told, "arguments");
  const policy = property(told, "effective_policy_definition");
  const limits = [property(args, "x-delivery-limit"), property(policy, "delivery-limit")].filter(isNumber);
  const timeouts = [property(args, "x-consumer-timeout"), property(policy, "consumer-timeout")].filter(
    isNumber,
  );
  const exchange = textOf(
    property(args, "x-dead-letter-exchange") ?? property(policy, "dead-letter-exchange"),
  );
  const limit = limits.some((one) => one < 0) ? Math.max(...limits) : Math.min(...limits);
  return {
    type: typeOf(property(told, "type") ?? property(args, "x-queue-type")),
    deliveryLimit: limits.length === 0 ? undefined : limit < 0 ? "unlimited" : limit,
    deadLetterExchange: exchange ?? "none",
    ...(property(args, "x-single-active-consumer") === true ? { singleActiveConsumer: true } : {}),
    acknowledgementTimeoutMs: timeouts.length === 0 ? undefined : Math.min(...timeouts),
    version: textOf(property(overview, "rabbitmq_version") ?? property(overview, "product_version")),
  };
}

/** What the management API says of a path, as JSON. Rejects where it cannot be asked; the text holds no credentials. */
export async function askApi(management: Management, path: string): Promise<unknown> {
  const { username, password, timeoutMs = 5_000 } = management;
  const ask = management.fetch ?? globalThis.fetch;
  const token = Buffer.from(`${username ?? "guest"}:${password ?? "guest"}`).toString("base64");
  const response = await ask(new URL(path, `${management.url.replace(/\/+$/, "")}/`), {
    headers: { authorization: `Basic ${token}` },
    signal: AbortSignal.timeout(timeoutMs),
  });
  if (response.ok) return response.json();
  await response.body?.cancel();
  throw new InboxError("source-failed", `The management API answered ${response.status} for ${path}.`);
}

const isNumber = (value: unknown): value is number => typeof value === "number";
const textOf = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);

const typeOf = (value: unknown): QueueFacts["type"] =>
  value === "classic" || value === "quorum" || value === "stream" ? value : undefined;

import type { SendFailure } from "./producer.ts";

type Kind = SendFailure["kind"];

/** By the protocol's numbers, which two of the clients give, and librdkafka's own below zero. */
const byNumber: ReadonlyMap<unknown, Kind> = new Map<unknown, Kind>([
  ...([10, 18] as const).map((code) => [code, "too-large"] as const),
  ...([87] as const).map((code) => [code, "invalid"] as const),
  ...([17, 29] as const).map((code) => [code, "forbidden"] as const),
  ...([3, -188, -190] as const).map((code) => [code, "no-topic"] as const),
  ...([-184, -195] as const).map((code) => [code, "not-sent"] as const),
]);

/** By the protocol's names, and by what the clients and the system say of connections. */
const byName: ReadonlyMap<unknown, Kind> = new Map<unknown, Kind>([
  ...(["MESSAGE_TOO_LARGE", "RECORD_LIST_TOO_LARGE"] as const).map((name) => [name, "too-large"] as const),
  ["INVALID_RECORD", "invalid"],
  ...(["INVALID_TOPIC_EXCEPTION", "TOPIC_AUTHORIZATION_FAILED"] as const).map(
    (name) => [name, "forbidden"] as const,
  ),
  ["UNKNOWN_TOPIC_OR_PARTITION", "no-topic"],
  ...(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH"] as const).map(
    (name) => [name, "not-sent"] as const,
  ),
  ["KafkaJSMetadataNotLoaded", "not-sent"],
]);

/** What an error of any of the clients says of the records it was about; whatever is not known is unclear. */
export function failureOf(error: unknown): SendFailure {
  for (const link of linksIn(error, 0)) {
    const { code, type, apiId, name } = link;
    const kind = byNumber.get(code) ?? [type, apiId, code, name].map((one) => byName.get(one)).find(Boolean);
    if (kind !== undefined) return { error, kind };
    if (code === "PLT_KFK_USER" && /^Unknown topic /.test(String(link.message)))
      return { error, kind: "no-topic" };
  }
  return { error, kind: "unclear" };
}

interface Link {
  readonly code?: unknown;
  readonly type?: unknown;
  readonly apiId?: unknown;
  readonly name?: unknown;
  readonly message?: unknown;
  readonly errors?: unknown;
  readonly cause?: unknown;
}

function* linksIn(error: unknown, depth: number): Generator<Link> {
  if (typeof error !== "object" || error === null || depth > 8) return;
  const link = error as Link;
  yield link;
  if (Array.isArray(link.errors)) for (const inner of link.errors) yield* linksIn(inner, depth + 1);
  yield* linksIn(link.cause, depth + 1);
}

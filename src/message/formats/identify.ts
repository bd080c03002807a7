import { fingerprintMode } from "../fingerprint-mode.ts";
import type { FingerprintOptions } from "../fingerprint-mode.ts";
import type { Fingerprint } from "../fingerprint.ts";
import { identityDigest } from "../identity.ts";
import { isRejected } from "../message.ts";
import type { RejectionCode } from "../message.ts";
import { capturedDeliveries } from "./captured.ts";
import type { Format, RawDelivery, Why } from "./format.ts";
import { formatByName } from "./formats.ts";
import { guessFormat } from "./guess.ts";

/** What one message, or what is none, in a file is to the inbox. `number` counts from 1 through the file. */
export interface Identified {
  readonly number: number;
  readonly format: string;
  /** By what the format was guessed; `undefined` if it was given. */
  readonly guessed: string | undefined;
  readonly result:
    IdentifiedMessage | IdentifiedRejection | { readonly kind: "ignored"; readonly reason: string };
}

export interface IdentifiedMessage {
  readonly kind: "message";
  readonly tenant: string;
  readonly producer: string;
  readonly id: string;
  readonly fingerprint: Fingerprint;
  readonly key: string | undefined;
  readonly type: string | undefined;
  readonly time: Date | undefined;
  readonly payloadBytes: number | undefined;
  readonly why: Why & { readonly fingerprint: string };
  /** What the inbox would say of it after those before it in the file, and which of them it is compared with. */
  readonly verdict: { readonly is: "new" } | { readonly is: "duplicate" | "conflict"; readonly of: number };
}

export interface IdentifiedRejection {
  readonly kind: "rejected";
  readonly code: RejectionCode;
  readonly text: string;
}

export interface IdentifyOptions {
  /** Default: guessed for each delivery. */
  readonly format?: Format | undefined;
  /** Default: the format's own. */
  readonly fingerprint?: FingerprintOptions | undefined;
  /** The producer, where the format is guessed and the delivery names none. */
  readonly producer?: string | undefined;
  /** Stands for the topic, queue or path of deliveries that name none. */
  readonly channel: string;
}

/** Shows what a format sees in a file: every message with its identity, its fingerprint, and where they come from. */
export function identifyFile(file: Uint8Array, options: IdentifyOptions): readonly Identified[] {
  const deliveries = capturedDeliveries(file, options.channel);
  const guesses = deliveries.map((delivery) =>
    options.format === undefined ? guessFormat(delivery) : undefined,
  );
  // A tombstone, or a message without its id, is read as its neighbours are.
  const common = guesses.find((guess) => guess !== undefined);
  const seen = new Map<string, { number: number; digest: string }>();
  const found: Identified[] = [];
  for (const [i, delivery] of deliveries.entries()) {
    const guess = guesses[i] ?? common;
    const format = options.format ?? (guess === undefined ? undefined : guessed(guess, options.producer));
    if (format === undefined) {
      const text =
        "No format that is known fits: name one with --format, or an id with --id-path or --id-header.";
      found.push({
        number: found.length + 1,
        format: "none",
        guessed: undefined,
        result: { kind: "rejected", code: "no-identity", text },
      });
      continue;
    }
    for (const result of resultsOf(format, delivery, options, seen, found.length + 1)) {
      found.push({ number: found.length + 1, format: format.name, guessed: guess?.because, result });
    }
  }
  return found;
}

const guessed = (
  { name, idPath }: { name: Parameters<typeof formatByName>[0]; idPath?: string },
  producer: string | undefined,
): Format =>
  name === "json" ? formatByName("json", { idPath: idPath!, producer }) : formatByName(name, { producer });

function resultsOf(
  format: Format,
  delivery: RawDelivery,
  options: IdentifyOptions,
  seen: Map<string, { number: number; digest: string }>,
  firstNumber: number,
): Identified["result"][] {
  const fingerprintOptions = options.fingerprint ?? format.fingerprint;
  const mode = fingerprintMode(fingerprintOptions);
  return format.read(delivery).map((item, offset) => {
    if (item.kind === "ignored") return item;
    const { received, why } = item;
    if (isRejected(received)) return { kind: "rejected", ...received.rejected };
    const { tenant, producer, id, key, type, time } = received;
    const fingerprint = received.fingerprint(mode);
    const name = identityDigest("", received);
    const before = seen.get(name);
    if (before === undefined) seen.set(name, { number: firstNumber + offset, digest: fingerprint.digest });
    return {
      kind: "message",
      tenant,
      producer,
      id,
      fingerprint,
      key,
      type,
      time,
      payloadBytes: received.bytes?.byteLength,
      why: { ...why, fingerprint: fingerprintWhy(fingerprintOptions, received.bytes) },
      verdict:
        before === undefined
          ? { is: "new" }
          : { is: before.digest === fingerprint.digest ? "duplicate" : "conflict", of: before.number },
    };
  });
}

function fingerprintWhy(options: FingerprintOptions, bytes: Uint8Array | null): string {
  if (bytes === null) return "none: a tombstone has no payload";
  if (options.by === "bytes") return "SHA-256 of the payload's bytes";
  const except =
    options.except === undefined || options.except.length === 0
      ? ""
      : `, without ${options.except.join(", ")}`;
  const mark =
    bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf
      ? "; a byte order mark at its beginning does not count"
      : "";
  return `SHA-256 of the payload as canonical JSON${except}${mark}`;
}

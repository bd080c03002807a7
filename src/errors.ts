/**
 * What a code means, whether trying again can help, and what to do. `docs/errors.md` is made from this list.
 * A code is part of the public contract: it is never renamed and never used for a second thing.
 */
export const errorCatalogue = {
  "invalid-option": { retryable: false, meaning: "An option given at construction breaks its rule." },
  "invalid-handler": {
    retryable: false,
    meaning: "A handler returned something that is no outcome word and no statement.",
  },
  "not-a-transaction": {
    retryable: false,
    meaning: "processInTransaction was given something that is no open transaction.",
  },
  "transaction-sealed": { retryable: false, meaning: "A tx was used after its handler had settled." },
  "floating-query": {
    retryable: true,
    meaning: "A handler settled while a statement of its own was still running; nothing was committed.",
  },
  "swallowed-error": {
    retryable: true,
    meaning:
      "A handler caught the error of a statement; the transaction was already aborted and nothing was committed.",
  },
  "unexpected-row-count": {
    retryable: true,
    meaning: "A statement changed another number of rows than it said it would; nothing was committed.",
  },
  "commit-refused": {
    retryable: true,
    meaning: "The server answered COMMIT with ROLLBACK; nothing was committed.",
  },
  "commit-unknown": {
    retryable: true,
    meaning: "The connection ended before COMMIT was answered; the inbox row will tell the redelivery.",
  },
  "connection-lost": {
    retryable: true,
    meaning: "The connection ended inside the transaction; nothing was committed.",
  },
  "store-unavailable": { retryable: true, meaning: "No connection to the database could be had in time." },
  busy: { retryable: true, meaning: "Another transaction holds the claim of this message." },
  "transaction-conflict": {
    retryable: true,
    meaning: "Serialization failures or deadlocks outlasted the retries.",
  },
  "schema-missing": { retryable: false, meaning: "The inbox schema is not there. Run: inbox migrate." },
  "schema-outdated": {
    retryable: false,
    meaning: "The inbox schema is older than this release. Run: inbox migrate.",
  },
  "schema-newer": {
    retryable: false,
    meaning: "The inbox schema is newer than this release. Update transactional-inbox.",
  },
  "handler-failed": { retryable: true, meaning: "The handler threw; its work was rolled back." },
  "handler-timeout": {
    retryable: true,
    meaning: "The handler took longer than handlerTimeoutMs; its work was rolled back.",
  },
  "handler-deferred": { retryable: true, meaning: "The handler asked to be run again later (retryIn)." },
  interrupted: {
    retryable: true,
    meaning: "The process was stopping; the work was rolled back and does not count as an attempt.",
  },
  "handler-rejected": {
    retryable: false,
    meaning: "The handler said the message can never be handled (PermanentError, or quarantine(reason)).",
  },
  "attempts-exhausted": { retryable: false, meaning: "The message failed as often as allowed." },
  "lease-lost": {
    retryable: true,
    meaning:
      "A worker lost its lease of a lane of pending messages; its work was rolled back, another one has them.",
  },
  "log-lost": {
    retryable: true,
    meaning:
      "With strict order or the cursor strategy, another process took over the log (a partition) a message came from; the work was rolled back, and that process applies the message.",
  },
  "log-gap": {
    retryable: true,
    meaning:
      "With the cursor strategy, a record came whose predecessor is not done; nothing was applied, it waits for that one.",
  },
  "log-changed": {
    retryable: false,
    meaning:
      "With the cursor strategy, a topic is not the one that was read, or ends before what is applied. The text says what to accept.",
  },
  crashed: {
    retryable: false,
    meaning: "The message, or effect, ended the process that handled or sent it as often as allowed.",
  },
  "payload-conflict": { retryable: false, meaning: "The identity was seen before with another payload." },
  late: {
    retryable: false,
    meaning:
      "The message is older than the horizon and not in the ledger: it cannot be proven new. Apply or discard it.",
  },
  "invalid-payload": { retryable: false, meaning: "The payload does not fit the consumer's schema." },
  "no-identity": { retryable: false, meaning: "The message carries no id, or no producer." },
  "invalid-identity": {
    retryable: false,
    meaning: "The id, producer or tenant is no text, or holds a NUL or a lone surrogate.",
  },
  "identity-too-long": { retryable: false, meaning: "The id, producer or tenant is over its length limit." },
  malformed: { retryable: false, meaning: "The delivery could not be read in the format it should have." },
  "too-large": { retryable: false, meaning: "The payload is over the limit of the source." },
  "unsafe-xml": { retryable: false, meaning: "The document has a DOCTYPE, which its protocol forbids." },
  "payload-key-missing": {
    retryable: true,
    meaning:
      "The key that seals or opens a stored payload could not be had. Nothing is stored unsealed, nothing is acknowledged.",
  },
  "payload-damaged": {
    retryable: false,
    meaning: "A sealed payload does not open with its key: it was changed, or belongs to another message.",
  },
  "entry-missing": {
    retryable: false,
    meaning: "There is no such entry in quarantine or among refused effects, or it was purged.",
  },
  "already-decided": {
    retryable: false,
    meaning: "Somebody has decided on this entry before; the text says who, when and what.",
  },
  "already-applied": {
    retryable: false,
    meaning: "The identity is applied. Discard the entry, or repair it under an id of its own.",
  },
  "already-pending": {
    retryable: false,
    meaning: "Another body of this identity waits to be handled. Decide when that has its outcome.",
  },
  "count-changed": {
    retryable: true,
    meaning: "More or fewer entries fit the filter than were expected; nothing was decided.",
  },
  "decision-needs": {
    retryable: false,
    meaning: "A decision lacks what it needs: who, why, an identity, or a payload.",
  },
  "import-refused": {
    retryable: false,
    meaning: "A line of an import is no exported entry; the text names the line.",
  },
  "sent-refused": {
    retryable: false,
    meaning:
      "A list of what was sent holds something that is no message, or changed while it was read; the text names the line or row. Nothing was compared.",
  },
  "invalid-effect": {
    retryable: false,
    meaning: "An effect that cannot be sent: the text says what is wrong.",
  },
  "effect-conflict": {
    retryable: false,
    meaning:
      "The id of an effect was used before at this destination, with another payload. Nothing was added.",
  },
  "source-unknown": {
    retryable: false,
    meaning: "No source of that name has reported progress for the consumer. See: inbox retention status",
  },
  "identity-unknown": { retryable: false, meaning: "The consumer has no such message." },
  "window-too-short": {
    retryable: false,
    meaning:
      "Copies of a message may come later than its identity is kept. Lengthen the window; see: inbox retention plan.",
  },
  "replay-refused": {
    retryable: false,
    meaning:
      "A replay that names no policy, or that its policy does not allow; the text says why. Nothing was run.",
  },
  "effect-refused": {
    retryable: false,
    meaning: "In a replay whose policy allows no effects, the handler asked for one. The replay ended there.",
  },
  "consumer-retired": {
    retryable: false,
    meaning: "The consumer is retired: another one has taken over. Run that one, or choose another name.",
  },
  "not-caught-up": {
    retryable: true,
    meaning: "A consumer is not retired as long as its successor has not applied everything that it has.",
  },
  "missing-package": {
    retryable: false,
    meaning: "An optional package that was asked for is not installed; the text names the install command.",
  },
  "local-postgres": { retryable: false, meaning: "The local PostgreSQL could not be started or stopped." },
  "source-failed": { retryable: true, meaning: "The source ended with an error." },
} as const satisfies Record<string, { retryable: boolean; meaning: string }>;

export type ErrorCode = keyof typeof errorCatalogue;

/** Every error this library throws or reports. `code` is stable; the message is for people and may change. */
export class InboxError extends Error {
  override readonly name: string = "InboxError";
  readonly code: ErrorCode;
  /** Whether the same call may succeed later without anybody changing anything. */
  readonly retryable: boolean;

  constructor(code: ErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.code = code;
    this.retryable = errorCatalogue[code].retryable;
  }
}

// Known to every copy of this package in a process.
const permanent: unique symbol = Symbol.for("transactional-inbox.permanent") as never;

/**
 * Throw it from a handler to say that this message can never be handled: it goes to quarantine at once, however many
 * attempts it has left. Any other error is retried.
 */
export class PermanentError extends Error {
  override readonly name = "PermanentError";
  readonly [permanent] = true;
}

/** Whether a value is a `PermanentError`, of this or another copy of the package. */
export const isPermanent = (value: unknown): boolean =>
  typeof value === "object" && value !== null && permanent in value;

/** Whether the error or one of its causes has this SQLSTATE or code. */
export function hasCode(error: unknown, code: string): boolean {
  for (const link of causes(error)) if (codeOf(link) === code) return true;
  return false;
}

/** The error and its causes, outermost first; at most eight, so that a circle ends. */
export function* causes(error: unknown): Generator {
  let link = error;
  for (let depth = 0; depth < 8 && link !== undefined && link !== null; depth++) {
    yield link;
    link = typeof link === "object" && "cause" in link ? link.cause : undefined;
  }
}

/** Error codes are hostile too: only text is one. */
export function codeOf(link: unknown): string {
  if (typeof link !== "object" || link === null) return "";
  try {
    const code: unknown = (link as { code?: unknown }).code;
    return typeof code === "string" ? code : "";
  } catch {
    return "";
  }
}

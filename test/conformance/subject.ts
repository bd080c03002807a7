import type { TestContext } from "node:test";
import type { Source } from "../../src/sources/source.ts";
import type { Scope } from "../support/cleanup.ts";
import type { FaultProxy } from "../support/fault-proxy.ts";

// The contract between the conformance suite and the sources it tests. One subject a source, or a client of a source:
// `subjects/NAME.ts` exports `subject` (used by the test process) and `makeSource` (used by the consumer processes, into
// whose program the file is bundled), and `NAME.test.ts` beside the suite calls `conformance(...)`.

/**
 * What the suite does with a subject; each is a test.
 *
 * - `dies`: SIGKILL in the handler, before commit, between commit and ack, before the source is told, after the ack.
 * - `joins-and-leaves`: two and three consumers come and go while handlers run, by SIGKILL and by SIGTERM; once a variant.
 * - `cut-in-handler`, `cut-in-ack`: the consumer's connections break while it handles, and around a settlement.
 * - `poison`: one message of 1,000 always fails; it alone goes to quarantine.
 * - `lease`: a handler takes longer than the broker leaves a delivery with a consumer.
 * - `stopped-process`: a consumer is stopped (SIGSTOP) in a handler, others get what it had, and it wakes up.
 * - `broker-restart`: the broker is stopped and started again while consumers work.
 * - `graceful-stop`: SIGTERM under load; nothing that was settled is delivered again.
 * - `order`: messages of a key are applied in the order of sending, through failures and changes of consumers.
 * - `no-identity`: a message without an id goes to quarantine, once it is settled.
 * - `duplicates`: every message is published twice.
 * - `back-pressure`: handlers are slower than the broker; what is in hand stays bounded, in messages and in bytes.
 * - `store-away`: the database is killed and comes back while a consumer works.
 * - `health`: `run.health()` tells a consumer that makes no progress from one that has nothing to do.
 */
export const caseNames = [
  "dies",
  "joins-and-leaves",
  "cut-in-handler",
  "cut-in-ack",
  "poison",
  "lease",
  "stopped-process",
  "broker-restart",
  "graceful-stop",
  "order",
  "no-identity",
  "duplicates",
  "back-pressure",
  "store-away",
  "health",
] as const;

export type CaseName = (typeof caseNames)[number];

/** A message as the suite sends it. */
export interface Sent {
  /** Becomes `message.id`. `undefined`: it has no id anywhere, and the source must find none. */
  readonly id: string | undefined;
  /** Becomes `message.key`: the Kafka key, the FIFO group, a header. */
  readonly key: string;
  /** The payload: JSON, with `id` (if there is one) and `key` in it for sources that look there. */
  readonly body: string;
  /**
   * Another one for each publication, also of the same message: for a broker that drops what was published before. Both
   * copies of a message must reach the consumer.
   */
  readonly publication: string;
}

/** What a case needs of its place. */
export interface Needs {
  /** A name no other case has, of letters, digits and `-`: for the topic, queue, stream, group. */
  readonly name: string;
  /** Consumers reach the broker by a line that can be cut. */
  readonly line?: true;
  /** The case restarts the broker: it must be one that nobody else uses. */
  readonly restart?: true;
  /** The shortest lease the broker has: `Place.leaseMs` says which. */
  readonly shortLease?: true;
  /** The case stops the database: `Stage.server` is one that nobody else uses. The stage sees to it, not the subject. */
  readonly ownServer?: true;
  /** One of the subject's `variants`. */
  readonly variant?: string;
  /** The subject's: what is published must not come twice because it was sent twice. */
  readonly namesByPlace?: true;
}

/** The consumers' connections to the broker. Publishing and `unsettled` do not go through it. */
export interface Line {
  /** Cuts all connections; new ones may be made at once. */
  cutAll(): void;
  /** Cuts the connection when a consumer next sends a settlement; the broker never sees it. */
  cutBeforeAck?(): void;
  /** Passes the next settlement on, and cuts the connection when the broker next sends something. */
  cutAfterAck?(): void;
}

/** A topic, queue or stream of one case, empty, with nobody else on it. */
export interface Place {
  /** What `makeSource` is called with in every consumer of the case; it travels as JSON. */
  readonly config: unknown;
  /** Resolves when the broker has stored all of them, in this order for each key. */
  publish(messages: readonly Sent[]): Promise<void>;
  /** How many messages the broker holds for these consumers: waiting, delayed, or handed over and not settled. */
  unsettled(): Promise<number>;
  /** How often the broker refused a settlement or did not know what it was about, where it can tell. */
  refused?(): Promise<number>;
  /** With `needs.line`. */
  readonly line?: Line;
  /** With `needs.restart`: stops the broker, by SIGKILL if it survives that, starts it, resolves when it serves again. */
  restart?(): Promise<void>;
  /** With `needs.shortLease`: how long the broker leaves a delivery with a consumer that says nothing, in milliseconds. */
  readonly leaseMs?: number;
}

export interface Subject {
  /** `rabbitmq (amqplib)`: in the tests' names. */
  readonly name: string;
  /** `subjects/NAME.ts`, as `import.meta.filename`: holds `makeSource`. */
  readonly module: string;
  /**
   * Whether messages of one key are applied in the order of sending: with any number of consumers; only while one
   * consumer at a time is there, also after its death; or never.
   */
  readonly order: "always" | "one consumer" | "never";
  /**
   * One number says what is settled, as with Kafka's offsets: what was settled above the first unsettled message may be
   * delivered again after a stop. Default: each message by itself.
   */
  readonly cumulative?: boolean;
  /** The source names messages by their places in a log: the suite tells them by the ids in their bodies. */
  readonly namesByPlace?: boolean;
  /** Ways a group shares its work, such as Kafka's eager and cooperative. `joins-and-leaves` is run with each. */
  readonly variants?: readonly string[];
  /** What the source or its broker cannot do, with the reason; the case is skipped with it. */
  readonly lacks?: Partial<Record<CaseName, string>>;
  /** How long a case waits for everything to be settled, in milliseconds. Default 30,000. */
  readonly patienceMs?: number;
  /**
   * Opens a place. What belongs to the case ends by `onTestEnd(t, ...)`; what all cases share (a client, a broker of the
   * subject's own) by `onTestEnd(suite, ...)`. `undefined`: something is not on this machine, and `t` was skipped with
   * the reason (`requireOrSkip`).
   */
  open(t: TestContext, needs: Needs, suite: Scope): Promise<Place | undefined>;
}

/** Makes the source from `Place.config`, in a consumer process; `inbox.run` starts and closes it. */
export type MakeSource = (config: never) => Source | Promise<Source>;

/** A line through the proxy, for a protocol whose settlements hold a text by which they are known on the wire. */
export const lineThrough = (proxy: FaultProxy, ack?: string): Line => ({
  cutAll: () => proxy.cutAll(),
  ...(ack === undefined
    ? {}
    : { cutBeforeAck: () => proxy.cutBefore(ack), cutAfterAck: () => proxy.dropReplyTo(ack) }),
});

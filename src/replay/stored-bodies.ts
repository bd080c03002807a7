import { InboxError } from "../errors.ts";
import { receiveMessage } from "../message/create-message.ts";
import { identityDigest } from "../message/identity.ts";
import type { Received } from "../message/message.ts";
import { createRedelivery } from "../sources/redelivery.ts";
import type { Intake, Source } from "../sources/source.ts";
import { createUnsettled } from "../sources/unsettled.ts";
import type { QuarantineEntry, QuarantineStatus } from "../store/quarantine-entry.ts";
import type { Store } from "../store/store.ts";

/** Which bodies an inbox keeps: those in pending, and those in quarantine by their status. */
export type StoredPart = "pending" | "retried" | "repaired" | "open";

export interface StoredBodiesOptions {
  /** The inbox that keeps the bodies: this one, or another one's. */
  readonly store: Store;
  /** Whose bodies. */
  readonly consumer: string;
  /**
   * Which of them. Default `pending`, `retried` and `repaired`: what the consumer waits for or was given back. `open` has
   * no decision yet, and what was discarded is not offered.
   */
  readonly include?: readonly StoredPart[] | undefined;
}

const parts: readonly StoredPart[] = ["retried", "repaired", "open", "pending"];
const pageRows = 500;
const together = 16;

/**
 * A source of the bodies that an inbox keeps of a consumer: first those in quarantine, then those in pending in the order
 * of arrival. They stay where they are. What goes out of pending while it is read is left out, for it was applied or
 * rejected meanwhile; so read what nobody works on, such as what was stored to be kept. Throws `invalid-option`.
 */
export function storedBodies({ store, consumer, include }: StoredBodiesOptions): Source {
  const wanted = include ?? ["pending", "retried", "repaired"];
  for (const part of wanted) {
    if (parts.includes(part)) continue;
    throw new InboxError(
      "invalid-option",
      `include must hold some of ${parts.join(", ")}; got ${JSON.stringify(part)}.`,
    );
  }
  const unsettled = createUnsettled();
  let intake: Intake;
  const redelivery = createRedelivery(unsettled, (delivery) => void intake.deliver([delivery]));
  let stopped = false;
  let place = 0;
  let wake: () => void = () => undefined;

  async function* quarantined(status: QuarantineStatus): AsyncGenerator<readonly Received[]> {
    for (let after: string | undefined; ;) {
      const rows = await store.quarantined.list({
        ...{ consumer, status, after, first: "oldest", limit: pageRows },
      });
      for (const ids of chunks(rows.map(({ id }) => id))) {
        const entries = await Promise.all(ids.map((id) => store.quarantined.show(id)));
        yield entries.flatMap((entry) => (entry === undefined ? [] : messageOf(entry)));
      }
      if (rows.length < pageRows) return;
      after = rows.at(-1)!.id;
    }
  }

  async function* pending(): AsyncGenerator<readonly Received[]> {
    for (let after: string | undefined; ;) {
      const rows = await store.operator.listPending({ consumer, after, limit: pageRows });
      for (const some of chunks(rows)) {
        const digests = some.map((row) => identityDigest(consumer, { ...row, id: row.messageId }));
        const entries = await Promise.all(digests.map((digest) => store.operator.showPending(digest)));
        yield entries.flatMap((entry) =>
          entry === undefined ? [] : receiveMessage({ ...entry, id: entry.messageId }),
        );
      }
      if (rows.length < pageRows) return;
      after = rows.at(-1)!.position;
    }
  }

  async function read(): Promise<void> {
    for (const part of parts.filter((one) => wanted.includes(one))) {
      for await (const messages of part === "pending" ? pending() : quarantined(part)) {
        if (stopped) return;
        await intake.deliver(
          messages.flatMap((message) =>
            unsettled.add({ start: place++, bytes: message.bytes?.byteLength ?? 0 }, [message], false),
          ),
        );
        if (stopped) return;
      }
    }
    while (unsettled.count > 0 && !stopped) await new Promise<void>((resolve) => (wake = resolve));
  }

  return {
    name: `stored:${consumer}`,
    async start(given) {
      intake = given;
      await store.ping();
      void read().then(
        () => {
          if (!stopped) intake.end();
        },
        (error: unknown) => {
          if (!stopped) intake.end(error instanceof Error ? error : new Error(String(error)));
        },
      );
    },
    async settle(settlements: Parameters<Source["settle"]>[0]) {
      for (const [delivery, settlement] of settlements) redelivery.settle(delivery, settlement);
      wake();
    },
    async stop() {
      stopped = true;
      redelivery.stop();
      wake();
    },
    close: async () => undefined,
  };
}

/** A conflict's body is not what its identity means, and what has no identity is no message. */
function messageOf(entry: QuarantineEntry): readonly Received[] {
  const { repair, key, type, time, headers } = entry;
  if (entry.status === "repaired" && repair !== undefined) {
    const { tenant, producer, messageId: id, payload } = repair;
    return [receiveMessage({ tenant, producer, id, payload, key, type, time, headers })];
  }
  const { tenant, producer, messageId: id, payload } = entry;
  if (producer === undefined || id === undefined || entry.code === "payload-conflict") return [];
  return [receiveMessage({ tenant, producer, id, payload, key, type, time, headers })];
}

function* chunks<Row>(rows: readonly Row[]): Generator<readonly Row[]> {
  for (let at = 0; at < rows.length; at += together) yield rows.slice(at, at + together);
}

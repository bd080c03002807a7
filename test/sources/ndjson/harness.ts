import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isRejected, type Received } from "../../../src/message/message.ts";
import type { CheckpointStore } from "../../../src/sources/ndjson/checkpoint.ts";
import { ndjson, type NdjsonOptions, type NdjsonSource } from "../../../src/sources/ndjson/ndjson.ts";
import type { Delivery, Settlement } from "../../../src/sources/source.ts";
import { onTestEnd, type Scope } from "../../support/cleanup.ts";
import { testIntake } from "../../support/intake.ts";

/** What a runner would do with a delivery; `undefined`: nothing yet. */
export type Answer = (delivery: Delivery, nth: number) => Settlement | undefined;

export const ack: Settlement = { kind: "ack" };

/** A source at work, with an intake that answers as it is told. */
export interface Worked {
  readonly source: NdjsonSource;
  readonly deliveries: Delivery[];
  readonly notices: string[];
  /** Resolves when the source has ended by itself. */
  readonly ended: Promise<Error | undefined>;
  /** Resolves when so many deliveries were made. */
  readonly delivered: (count: number) => Promise<void>;
  /** Stops and closes, as a runner does at the end. */
  readonly close: () => Promise<void>;
}

export const plain = { idPath: "id", producer: "shop" } as const;

/** A directory of the test's own, removed after it. */
export function ownDirectory(t: Scope): string {
  const directory = mkdtempSync(join(tmpdir(), "inbox-ndjson-"));
  onTestEnd(t, () => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/** Starts a source. Deliveries without an answer stay in hand. */
export async function work(
  t: Scope | undefined,
  options: Partial<NdjsonOptions> & Pick<NdjsonOptions, "from">,
  answer: Answer = () => ack,
  beforeDeliver: () => Promise<void> = async () => undefined,
): Promise<Worked> {
  const notices: string[] = [];
  const source = ndjson({ identity: plain, onNotice: (text) => notices.push(text), ...options });
  const deliveries: Delivery[] = [];
  const waiting: { count: number; resolve: () => void }[] = [];
  let end: (error: Error | undefined) => void;
  const ended = new Promise<Error | undefined>((resolve) => (end = resolve));
  const close = async (): Promise<void> => {
    await source.stop();
    await source.close();
  };
  if (t !== undefined) onTestEnd(t, close);
  await source.start(
    testIntake({
      async deliver(list) {
        const answers: [Delivery, Settlement][] = [];
        for (const delivery of list) {
          deliveries.push(delivery);
          const settlement = answer(delivery, deliveries.length - 1);
          if (settlement !== undefined) answers.push([delivery, settlement]);
        }
        for (const { count, resolve } of waiting) if (deliveries.length >= count) resolve();
        await beforeDeliver();
        await source.settle(answers);
      },
      end: (error) => end(error),
    }),
  );
  return {
    ...{ source, deliveries, notices, ended, close },
    delivered: (count) =>
      new Promise((resolve) => {
        if (deliveries.length >= count) resolve();
        else waiting.push({ count, resolve });
      }),
  };
}

/** Works through the whole input and returns what came. */
export async function received(
  t: Scope,
  options: Partial<NdjsonOptions> & Pick<NdjsonOptions, "from">,
): Promise<Received[]> {
  const { deliveries, ended } = await work(t, options);
  const error = await ended;
  if (error !== undefined) throw error;
  return deliveries.map((delivery) => delivery.received);
}

/** The ids of messages, and the codes of rejected ones in brackets. */
export const ids = (list: readonly Received[]): string[] =>
  list.map((one) => (isRejected(one) ? `[${one.rejected.code}]` : one.id));

/** A store in memory that tells how often it was used. */
export function memoryStore(): CheckpointStore & { saved: string[]; values: Map<string, string> } {
  const values = new Map<string, string>();
  const saved: string[] = [];
  return {
    ...{ values, saved },
    load: async (key) => values.get(key),
    async save(key, value) {
      values.set(key, value);
      saved.push(value);
    },
  };
}

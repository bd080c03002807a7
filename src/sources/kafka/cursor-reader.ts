import { InboxError } from "../../errors.ts";
import { headerTexts, keyText } from "../../message/formats/header-value.ts";
import { isRejected, type Message } from "../../message/message.ts";
import { recordId } from "../../message/record-id.ts";
import { receiveMessage } from "../../message/create-message.ts";
import type { Intake, LogPosition, TakenCursor } from "../source.ts";
import { nameOf, type Assignment, type KafkaRecord, type KafkaSession, type LogIdentity } from "./client.ts";
import { topicIdText, type CursorStrategy } from "./cursor.ts";

/** A partition whose records are applied by its cursor. */
export interface PartitionCursor {
  readonly position: LogPosition;
  readonly incarnation: string;
  readonly applied: bigint | undefined;
}

/** A partition with its cursor, and where reading begins. */
export interface TakenPartition {
  readonly cursor: PartitionCursor;
  readonly assignment: Assignment;
}

/** Takes partitions with their cursors, and names their records. */
export interface CursorReader {
  /** Rejects where a topic's id cannot be known, is not the declared one, or not the one that is being read. Default: all topics. */
  check(session: KafkaSession, topics?: readonly string[]): Promise<void>;
  /** Whether the client tells topics' ids; else only what is declared is known, and to ask again tells nothing. */
  tells(): boolean;
  /**
   * Takes a partition and tells where reading begins. Rejects with `log-changed` where a person must agree first, and with
   * whatever went wrong at the database or the broker.
   */
  take(session: KafkaSession, assignment: Assignment): Promise<TakenPartition>;
  /** A partition went back to this record while it was read: what to end with. */
  wentBack(
    session: KafkaSession,
    cursor: PartitionCursor,
    record: KafkaRecord,
    next: bigint,
  ): Promise<InboxError>;
  read(cursor: PartitionCursor, record: KafkaRecord): Message;
}

export function createCursorReader(
  strategy: CursorStrategy,
  tenant: string | undefined,
  topics: readonly string[],
  clientName: string,
  intake: () => Intake,
): CursorReader {
  const reading = new Map<string, string>();
  let tells = false;

  async function identify(
    session: KafkaSession,
    topic: string,
  ): Promise<{ cluster: string | undefined; topicId: string }> {
    const told: LogIdentity = await session.identify(topic);
    tells = told.topicId !== undefined;
    const toldId = told.topicId === undefined ? undefined : topicIdText(told.topicId);
    const topicId = agreed(`The id of topic ${topic}`, toldId, strategy.topicIds.get(topic));
    const cluster = agreed("The cluster's id", told.clusterId, strategy.clusterId);
    if (topicId !== undefined) return { cluster, topicId };
    throw new InboxError(
      "source-failed",
      `${clientName} does not tell the id of topic ${topic}, by which a topic that is made anew is known. ` +
        `Declare it: cursor({ topicIds: { "${topic}": "…" } }); kafka-topics.sh --describe prints it as TopicId.`,
    );
  }

  return {
    tells: () => tells,

    async check(session, asked = topics) {
      for (const topic of asked) {
        const { topicId } = await identify(session, topic);
        const known = reading.get(topic) ?? topicId;
        if (known === topicId) continue;
        throw new InboxError(
          "log-changed",
          `Topic ${topic} was made anew while it was read: its id was ${known}, and is ${topicId}. ` +
            "Start again: then it is said what to agree to.",
        );
      }
    },

    async take(session, assignment) {
      const { topic, partition, start } = assignment;
      const { markEnd, takeCursor, warn } = intake();
      if (takeCursor === undefined || markEnd === undefined)
        throw new InboxError("source-failed", "The cursor strategy needs a run of an inbox.");
      const { cluster, topicId } = await identify(session, topic);
      reading.set(topic, topicId);
      const log = logName(assignment);
      const part = String(partition);
      const ask = { cluster, incarnation: topicId, part, begin: start, accept: strategy.accept };
      const taken = await takeCursor(log, ask);
      if (taken.kind !== "taken") throw refused(assignment, topicId, taken);
      const { position, incarnation, applied } = taken;
      // Behind the fence: what the owner before had under way is in `applied`, and the log was there when that was read.
      let { low, high } = await session.watermarks(assignment);
      // A client may give the answer to a question that was asked before.
      if (applied !== undefined && high <= applied) ({ low, high } = await session.watermarks(assignment));
      if (applied !== undefined && high <= applied) {
        const { accept } = await markEnd(position, part, high);
        if (accept === undefined) throw new Error("Its end moved while it was looked at.");
        throw refused(assignment, topicId, { kind: "ended", end: high, applied, accept });
      }
      const cursor = { position, incarnation, applied };
      if (applied === undefined) return { cursor, assignment };
      const next = applied + 1n;
      if (next < low)
        warn(
          `${nameOf(assignment)} begins at offset ${low}, and is applied up to ${applied}: what was between is deleted, and nobody has handled it.`,
        );
      if (start !== undefined && start > next)
        warn(
          `${nameOf(assignment)} is applied up to ${applied}, and the group's offset is ${start}: reading goes on behind what is applied.`,
        );
      return { cursor, assignment: { ...assignment, start: next < low ? low : next } };
    },

    async wentBack(session, { position }, record, next) {
      const { high } = await session.watermarks(record);
      // Where it has grown past that again, nobody can tell how much of it is the old log.
      const end = high < next ? high : record.offset;
      const marked = await intake().markEnd?.(position, String(record.partition), end);
      const { accept } = marked ?? {};
      if (accept !== undefined) return endedAt(nameOf(record), end, `it was read up to ${next - 1n}`, accept);
      return new InboxError(
        "source-failed",
        `${nameOf(record)} went back from offset ${next} to ${record.offset}, and nothing behind that is applied. Start again.`,
      );
    },

    read({ incarnation }, { topic, partition, offset, key, value, headers }) {
      const id = recordId({ incarnation, part: String(partition), offset });
      const received = receiveMessage({
        ...{ tenant, producer: topic, id, payload: value },
        ...{ key: keyText(key), headers: headerTexts(headers) },
      });
      // Nothing in a record can be wrong: its name is ours, and bytes are bytes.
      if (isRejected(received)) throw new InboxError(received.rejected.code, received.rejected.text);
      return received;
    },
  };
}

/** Without the group: another group of the same consumer goes on where this one was. */
const logName = (partition: Assignment): string => `kafka:${nameOf(partition)}`;

function agreed(what: string, told: string | undefined, declared: string | undefined): string | undefined {
  if (told === undefined || declared === undefined || told === declared) return told ?? declared;
  throw new InboxError("log-changed", `${what} is ${told}, and ${declared} is declared: nothing was read.`);
}

type Refusal = Exclude<TakenCursor, { readonly kind: "taken" }>;

function refused(
  partition: { readonly topic: string; readonly partition: number },
  topicId: string,
  refusal: Refusal,
): InboxError {
  const name = nameOf(partition);
  const applied =
    refusal.applied === undefined ? "nothing is applied" : `it is applied up to ${refusal.applied}`;
  if (refusal.kind === "ended") return endedAt(name, refusal.end, applied, refusal.accept);
  return new InboxError(
    "log-changed",
    `${name} belongs to topic id ${topicId}; the one that was read is ${refusal.known}, of which ${applied}. ` +
      `If all its records are new, agree: cursor({ accept: "${refusal.accept}" }).`,
  );
}

const endedAt = (name: string, end: bigint, read: string, accept: string): InboxError =>
  new InboxError(
    "log-changed",
    `${name} ends at offset ${end}, and ${read}: the log lost its end. ` +
      `If what stands there from offset ${end} on is new, agree: cursor({ accept: "${accept}" }).`,
  );

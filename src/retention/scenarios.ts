import { showDuration } from "./duration.ts";
import type { BrokerFacts, DeclaredFacts } from "./facts.ts";

/** A way in which a message that was applied can come again. */
export type ScenarioName =
  | "redelivery"
  | "rewind"
  | "dead-letter redrive"
  | "producer retry"
  | "outbox replay"
  | "partner retry"
  | "restore"
  | "producer restore"
  | "planned replay"
  | "request replay";

export interface Scenario {
  readonly name: ScenarioName;
  /** The broker it is about; `undefined` where it is about none. */
  readonly broker: string | undefined;
  /** How long after it was first applied the last copy may come, in milliseconds; `undefined`: not declared. */
  readonly reachMs: number | undefined;
  /** What happens, and how the reach is reckoned. */
  readonly how: string;
}

/** Every way in which a copy may come late, with how late. Pure. */
export function scenariosOf(brokers: readonly BrokerFacts[], declared: DeclaredFacts): readonly Scenario[] {
  // However a copy comes to a broker, there it may wait as long as one whose acknowledgement was lost.
  const waits = Math.max(
    declared.longestOutageMs ?? 0,
    ...brokers.map((broker) => redelivery(broker, declared) ?? 0),
  );
  const waiting = waits > 0 ? `, and the copy then waits ${showDuration(waits)} to be handled` : "";
  const sentAgain = (
    name: ScenarioName,
    ms: number | undefined,
    what: (span: string) => string,
    ask: string,
  ): Scenario => ({
    ...{ name, broker: undefined, reachMs: ms === undefined ? undefined : ms + waits },
    how: ms === undefined ? ask : `${what(showDuration(ms))}${waiting}`,
  });
  return [
    ...brokers.flatMap((broker) => ofBroker(broker, declared, waits)),
    sentAgain(
      "producer retry",
      declared.producerRetryMs,
      (span) => `a producer repeats a send without an answer for ${span}`,
      "how long does a producer repeat a send?",
    ),
    sentAgain(
      "outbox replay",
      declared.outboxReplayMs,
      (span) => `an outbox is sent again, ${span} back`,
      "how far back may an outbox be sent again?",
    ),
    sentAgain(
      "partner retry",
      declared.partnerRetryMs,
      (span) => `a partner sends a document again within ${span}`,
      "how long do partners send again? 7 to 30 days in EDI",
    ),
    sentAgain(
      "restore",
      declared.restoreMs,
      (span) => `the database is restored from a backup ${span} old and its sources are set back by as much`,
      "how old a backup may the database be restored from?",
    ),
    sentAgain(
      "producer restore",
      declared.producerRestoreMs,
      (span) => `a producer is restored from a backup ${span} old and sends what it forgot it had sent`,
      "how old a backup may a producer be restored from?",
    ),
    sentAgain(
      "planned replay",
      declared.plannedReplayMs,
      (span) => `a replay begins ${span} back`,
      "how far back are replays planned?",
    ),
    sentAgain(
      "request replay",
      declared.requestToleranceMs,
      (span) => `a captured request is let in again while its signature is younger than ${span}`,
      "how old may a signed request be?",
    ),
  ];
}

/** How long after it was applied a message may come again because its acknowledgement was lost. */
function redelivery(broker: BrokerFacts, { longestOutageMs }: DeclaredFacts): number | undefined {
  if (longestOutageMs === undefined) {
    // It cannot outlast the message itself.
    return Number.isFinite(broker.retentionMs) ? broker.retentionMs : undefined;
  }
  return Math.min(broker.retentionMs, (broker.redeliverAfterMs ?? 0) + longestOutageMs);
}

function ofBroker(broker: BrokerFacts, declared: DeclaredFacts, waits: number): readonly Scenario[] {
  const { name, kind, retentionMs, deadLetter } = broker;
  const again = redelivery(broker, declared);
  const kept = showDuration(retentionMs);
  const scenarios: Scenario[] = [
    {
      ...{ name: "redelivery", broker: name, reachMs: again },
      how:
        again === undefined
          ? "how long may the consumer be down? The broker keeps messages for ever"
          : declared.longestOutageMs === undefined
            ? `an acknowledgement is lost; the broker keeps messages ${kept} (longestOutageMs would say less)`
            : `an acknowledgement is lost, and the consumer is down for ${showDuration(declared.longestOutageMs)}; the broker keeps messages ${kept}`,
    },
  ];
  if (kind === "log") {
    const limit = declared.maxRewindMs;
    const reachMs = Math.min(retentionMs, limit ?? Number.POSITIVE_INFINITY);
    scenarios.push({
      ...{ name: "rewind", broker: name, reachMs },
      how:
        reachMs < retentionMs
          ? `the consumer is set back, by your rule no more than ${showDuration(reachMs)} (the log keeps ${kept})`
          : `the consumer is set back to the beginning, or its position is lost; the log keeps ${kept}`,
    });
  }
  if (deadLetter !== undefined) {
    const there = Math.min(deadLetter.retentionMs, declared.maxRedriveMs ?? Number.POSITIVE_INFINITY);
    const before = deadLetter.startsAnew ? (again ?? retentionMs) : 0;
    scenarios.push({
      ...{ name: "dead-letter redrive", broker: name, reachMs: before + there + waits },
      how:
        `a message that was applied comes to ${deadLetter.name}` +
        `${before > 0 ? ` after ${showDuration(before)}` : ""}, is redriven from there after ${showDuration(there)}` +
        `${waits > 0 ? `, and waits ${showDuration(waits)} again` : ""}`,
    });
  }
  return scenarios;
}

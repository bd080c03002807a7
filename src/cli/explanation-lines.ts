import type { Explanation, MessageState } from "../explain/explain.ts";
import { printable, showValue } from "../message/show-value.ts";
import { factLines } from "./table.ts";

const states: Readonly<Record<MessageState, string>> = {
  applied: "applied: its effect is committed",
  pending: "pending: stored, and not handled yet",
  quarantined: "quarantined: it waits for a decision",
  discarded: "discarded: somebody decided that it is not to be handled",
  failed: "failed: nothing of it is stored, whoever delivers it sees to the next attempt",
  kept: "its identity is taken, nothing is applied, and its body is not here any more",
  passed: "passed: the cursor of its log is past it, so it is applied",
  unknown: "unknown",
};

/** An explanation for people. */
export function explanationLines(one: Explanation): readonly string[] {
  const { ledger, pending } = one;
  return [
    ...factLines([
      ["message id", one.id],
      ["consumer", one.consumer],
      ["tenant", one.tenant],
      ["producer", one.producer],
      ["state", states[one.state]],
      ["as of", one.at.toISOString()],
      ["first seen", one.firstSeenAt?.toISOString()],
      ["applied", ledger?.processedAt?.toISOString()],
      ["handler version", ledger?.handlerVersion],
      ["fingerprint", ledger && `${ledger.fingerprint || "none"} (${ledger.fingerprintMode})`],
      ["log", one.log && `${one.log.log}, applied up to ${one.log.applied ?? "nothing"}`],
      ["key", pending?.key],
      ["position", pending?.position],
      ["waits for", waitLine(one)],
      ["next attempt", nextLine(one)],
      ["attempts", one.attemptCount === 0 ? undefined : `${one.attemptCount} failed`],
    ]),
    ...one.attempts
      .slice(-10)
      .map(({ at, code, error, handlerVersion }) =>
        printable(`  ${at.toISOString()} ${code} (handler ${handlerVersion}): ${short(error)}`),
      ),
    ...one.started.map(({ workerId, at, running }) =>
      printable(
        `  started ${at.toISOString()} by worker ${workerId}, which ${running ? "is running" : "died, or was ended"}`,
      ),
    ),
    ...one.quarantined.map(({ id, status, code, error, decision }) =>
      printable(
        `quarantine entry ${id}: ${status}, ${code}: ${short(error)}` +
          (decision === undefined
            ? ""
            : `; ${decision.kind} by ${decision.by} at ${decision.at.toISOString()}: ${short(decision.why)}`),
      ),
    ),
    ...factLines([
      [
        "forgotten",
        one.forgottenAt ? `not before ${one.forgottenAt.toISOString()}` : "not before a window is set",
      ],
    ]),
  ];
}

const short = (text: string): string => (text.length > 200 ? `${text.slice(0, 199)}…` : text);

function waitLine({ waitsFor, pending }: Explanation): string | undefined {
  if (waitsFor === undefined || pending === undefined) return undefined;
  const { parked, lease, before } = pending;
  const head = parked?.head === undefined ? "an earlier message" : showValue(parked.head.id, 200);
  switch (waitsFor) {
    case "worker":
      return lease === undefined
        ? "a worker: none has taken its lane"
        : `a worker: the lease of lane ${lease.lane} ran out at ${lease.until.toISOString()}`;
    case "lane":
      return `worker ${lease?.workerId ?? ""}, which has lane ${lease?.lane ?? ""} until ${lease?.until.toISOString() ?? ""}`;
    case "schedule":
      return "the time of its next attempt";
    case "key":
      return `${head}, of the same key${before > 0 ? `; ${before}${before === 1_000 ? " or more" : ""} are before it` : ""}`;
    case "decision":
      return `a decision on ${head}, of the same key${parked?.entryId === undefined ? "" : `: inbox quarantine show ${parked.entryId}`}`;
  }
}

function nextLine({ pending, waitsFor, nextAttemptAt }: Explanation): string | undefined {
  if (pending === undefined) return undefined;
  if (nextAttemptAt !== undefined) return nextAttemptAt.toISOString();
  return waitsFor === "worker" || waitsFor === "lane"
    ? "as soon as a worker comes to it"
    : "when that is settled";
}

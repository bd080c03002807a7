import { describeBacklog } from "../retention/backlog.ts";
import type { CleanupStatus } from "../retention/cleanup.ts";
import { showDuration } from "../retention/duration.ts";
import type { ConsumerRetention } from "../retention/read-retention.ts";
import type { Io } from "./io.ts";
import { cell, counted, tableOf } from "./table.ts";

/** Why nothing of a consumer is forgotten now; `undefined`: it is. */
export function whyKept({
  windowMs,
  sources,
  waitsFor,
  before,
}: Pick<ConsumerRetention, "windowMs" | "sources" | "waitsFor" | "before">): string | undefined {
  if (windowMs === undefined) return "kept for ever";
  if (sources === 0) return "no source has reported progress";
  if (waitsFor.length > 0) return `waits for ${waitsFor.map((source) => cell(source)).join(", ")}`;
  if (before === undefined) return "its sources have not run for a whole window yet";
  return undefined;
}

/** Whether a person should look. */
export const needsLook = ({ consumers, cleanup, backlog }: CleanupStatus): boolean =>
  cleanup.lastError !== undefined ||
  backlog.behind ||
  consumers.some(
    ({ windowMs, sources, waitsFor }) => windowMs !== undefined && (sources === 0 || waitsFor.length > 0),
  );

const time = (at: Date | undefined): string => at?.toISOString().replace(/\.\d+Z$/, "Z") ?? "-";

/** Windows, sources and the last sweep. */
export function printStatus(io: Io, status: CleanupStatus): void {
  const { consumers, sources, cleanup } = status;
  if (consumers.length === 0) io.say("No consumer has a window: nothing is ever forgotten.");
  else {
    io.print(
      tableOf(
        ["consumer", "producer", "window", "forgotten before", "late if sent before", "state"],
        consumers.map((one) => [
          cell(one.consumer),
          one.producer === undefined ? "all others" : cell(one.producer),
          one.windowMs === undefined ? "for ever" : showDuration(one.windowMs),
          time(one.forgottenTo),
          time(one.horizon),
          whyKept(one) ?? "forgets",
        ]),
      ),
    );
  }
  if (sources.length > 0) {
    io.print(
      tableOf(
        ["consumer", "source", "state", "caught up to", "known since", "stood still", "workers"],
        sources.map((one) => [
          cell(one.consumer),
          cell(one.source),
          one.state === "never"
            ? "has not caught up"
            : one.state === "standing"
              ? "stands still"
              : "caught up",
          time(one.caughtUpAt),
          time(one.since),
          one.stoodMs === 0 ? "-" : showDuration(one.stoodMs),
          String(one.workers),
        ]),
      ),
    );
  }
  const last = `${counted(cleanup.identities, "identity", "identities")} forgotten`;
  if (cleanup.workerId !== undefined)
    io.say(`A sweep runs since ${time(cleanup.startedAt)}: ${last} so far.`);
  else if (cleanup.finishedAt === undefined) io.say("No sweep has run to its end. Run: inbox retention run");
  else io.say(`The last sweep ended at ${time(cleanup.finishedAt)}: ${last}.`);
  if (status.backlog.behind) io.say(describeBacklog(status.backlog));
  if (cleanup.lastError !== undefined) io.say(`The last sweep failed: ${cell(cleanup.lastError, 400)}`);
}

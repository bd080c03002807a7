import { randomUUID } from "node:crypto";
import { InboxError } from "../errors.ts";
import { tellWarning } from "../telemetry/tell-warning.ts";
import { errorText } from "./classify-error.ts";
import { busy, failUncounted, quarantineItem } from "./fail.ts";
import { createGate } from "./gate.ts";
import { settleTaken, workLane } from "./lane-attempt.ts";
import type { Item } from "./item.ts";
import type { LaneContext } from "./lane-context.ts";
import { withoutStuck } from "./stuck.ts";

/**
 * Finds the message that kills its process. While nothing dies it costs one heartbeat a few seconds and no write a
 * message. After an unclean death, messages that were handed over before run alone in their process, each behind a
 * committed "started" mark; a mark left by a dead worker is a crash of that message, and of no other.
 */
export interface CrashGuard {
  /** Names this worker process. */
  readonly workerId: string;
  start(): Promise<void>;
  /** Works through messages that a lane took, carefully where there is reason to. */
  work(items: readonly Item[]): Promise<void>;
  stop(): Promise<void>;
}

/** `onRetired`: told when another consumer has taken over from this one. */
export function createCrashGuard(
  context: LaneContext,
  leaseMs: number,
  onRetired: (error: InboxError) => void,
): CrashGuard {
  const { workers } = context.store;
  const { consumer } = context.name;
  const id = randomUUID();
  const gate = createGate();
  let died = 0;
  let timer: NodeJS.Timeout | undefined;
  let beating: Promise<void> = Promise.resolve();

  async function beat(): Promise<void> {
    try {
      ({ died } = await workers.heartbeat(consumer, id, leaseMs));
    } catch (error) {
      if (error instanceof InboxError && error.code === "consumer-retired") return onRetired(error);
      // A lease that runs out while the database is away makes this worker look dead: then care is taken, nothing is lost.
      tellWarning(`The worker's lease was not renewed: ${errorText(error)}`);
    }
  }

  async function workCarefully(item: Item): Promise<void> {
    if (withoutStuck(context, [item]).length === 0) return;
    let marks: { crashes: number; running: number };
    try {
      marks = await workers.markStarted(id, item.digest);
    } catch (error) {
      if (await context.waitForStore?.(error)) return workCarefully(item);
      return failUncounted(context, [item], error);
    }
    // Another worker has begun it, and is alive or not yet known to be dead: its lease will tell.
    if (marks.running > 0) {
      await clear(item, false);
      item.conflicts++;
      return busy(context, item, "busy");
    }
    if (marks.crashes >= context.settings.maxCrashes) {
      const text = `The process that handled this message died ${marks.crashes} times.`;
      await quarantineItem(context, item, "crashed", new InboxError("crashed", text), marks.crashes);
      return clear(item, true);
    }
    // Dying in here leaves the mark, which is how the next worker knows.
    await workLane(context, [item]);
    await clear(item, marks.crashes > 0 && item.processed?.settle === "ack");
  }

  async function clear(item: Item, all: boolean): Promise<void> {
    try {
      await workers.clearStarted(id, item.digest, all);
    } catch (error) {
      // A mark too many may count as a crash of this message if this process dies later: one chance fewer, no loss.
      tellWarning(`A started mark was not removed: ${errorText(error)}`);
    }
  }

  return {
    workerId: id,
    async start() {
      await workers.open(consumer, id, leaseMs);
      await beat();
      timer = setInterval(() => {
        beating = beating.then(beat);
      }, leaseMs / 3);
      timer.unref();
    },
    async work(items) {
      const [first] = items;
      const pending = first?.pending !== undefined;
      // A lane that was not given back tells of a death by itself; a broker's redelivery may have other reasons.
      const careful = first?.redelivered === true && (pending || died > 0);
      if (!careful) return gate.together(() => workLane({ ...context, aside: gate.aside }, items));
      // Most of what comes again was applied before the death: those need no care and no time of their own.
      const suspects = pending ? items : await gate.together(() => settleTaken(context, items));
      // Beside other lanes, what kills the process would leave its neighbours' marks behind too.
      for (const suspect of suspects) await gate.alone(() => workCarefully(suspect));
    },
    async stop() {
      clearInterval(timer);
      await beating;
      try {
        await workers.close(id);
      } catch (error) {
        tellWarning(`The worker was not closed: ${errorText(error)}`);
      }
    },
  };
}

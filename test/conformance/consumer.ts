import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { batch, createInbox, postgres, sql } from "../../src/index.ts";
import type { BatchHandler, BuiltStatement, HandlerTx, Message, MessageHandler } from "../../src/index.ts";
import type { Form, Point } from "../crash/plan.ts";
import { telemetry } from "../../src/telemetry/channels.ts";
import { watchPoints } from "../crash/watch-points.ts";
import { countingSource } from "./counting-source.ts";
import type { Content, Order, Pause, Plan, StoreState, Told } from "./plan.ts";
import type { MakeSource } from "./subject.ts";

/** A consumer process: takes the source through an inbox as its plan says, until SIGTERM. */
export async function consume(makeSource: MakeSource): Promise<void> {
  const plan = JSON.parse(process.argv[2]!) as Plan;
  const tell = (told: Told): void => void (process.connected && process.send?.(told));
  let over = false;
  // The test has ended. A process whose work is over is to end by itself: what keeps it was left open.
  process.once("disconnect", () => over || process.exit(3));

  const lanes = plan.inbox?.lanes ?? 4;
  const pool = new pg.Pool({
    connectionString: plan.url,
    options: Object.entries({ search_path: `${plan.schema},public`, ...plan.settings })
      .map(([name, value]) => `-c ${name}=${value}`)
      .join(" "),
    pipeline: true,
    max: lanes + 2,
  });
  pool.on("error", () => undefined);

  const idOf = (message: Message): string =>
    (plan.namesByPlace === true ? contentOf(message).id : undefined) ?? message.id;

  let handled = 0;
  const reached = (point: Point): void => {
    if (plan.die?.at === point && handled >= plan.die.after) process.kill(process.pid, "SIGKILL");
  };
  watchPoints(pool, reached);
  const pause = pauses(plan, tell, () => handled);

  telemetry.store.subscribe((told) => tell({ store: (told as { readonly state: StoreState }).state }));

  const failures = new Map<string, number>();
  async function work(message: Message): Promise<void> {
    const { fails, takesMs } = contentOf(message);
    const id = idOf(message);
    handled++;
    reached("handler");
    await pause("handler");
    const ms = takesMs ?? plan.handlerMs ?? 0;
    if (ms > 0) await sleep(ms);
    const before = failures.get(id) ?? 0;
    if (fails === undefined || (fails === "twice" && before >= 2)) return;
    failures.set(id, before + 1);
    throw new Error(`The message ${id} fails ${fails}.`);
  }

  const inbox = createInbox({
    store: postgres(pool, { schema: plan.schema }),
    consumer: "accounting",
    lanes,
    maxBatch: plan.inbox?.maxBatch ?? 20,
    retry: { delayMs: 20, maxAttempts: plan.inbox?.maxAttempts ?? 3 },
    // Processes are killed here as often as it takes; that no message is to blame is for other tests.
    maxCrashes: 1_000,
  });
  const counted = countingSource(await makeSource(plan.config as never), tell, idOf, {
    before: () => pause("before settle"),
    during: () => pause("in settle"),
  });
  const run = inbox.run(counted.source, handlers(plan.name, idOf, work)[plan.form], {
    workerLeaseMs: 1_000,
    ...plan.run,
  });
  process.once("SIGTERM", () => void run.stop().catch(() => undefined));
  process.on("message", (order: Order) => {
    if ("ask" in order) void run.health().then((health) => tell({ health }));
  });
  tell({ ready: true });
  await run.finished;
  tell({ report: counted.report() });
  await pool.end();
  over = true;
  process.disconnect?.();
}

const contentOf = (message: Message): Content => message.json() as Content;

/** Applied in the order of their commits, as far as one key goes: its row is locked until then. */
const record = (worker: string, id: string, message: Message): BuiltStatement => {
  const { key, sequence } = contentOf(message);
  return sql`with step as (update progress set applied = applied + 1 where key = ${key} returning applied)
    insert into effect (message_id, key, sequence, applied, worker)
    select ${id}::text, ${key}::text, ${sequence}::int, applied, ${worker}::text from step`.expecting(1);
};

function handlers(
  worker: string,
  idOf: (message: Message) => string,
  work: (message: Message) => Promise<void>,
): Record<Form, MessageHandler | BatchHandler> {
  return {
    tx: async (message, { tx }) => {
      await tx.query(record(worker, idOf(message), message));
      await work(message);
    },
    statements: async (message) => {
      await work(message);
      return [record(worker, idOf(message), message)];
    },
    batch: batch(async (messages: readonly Message[], { tx }: { tx: HandlerTx }) => {
      for (const message of messages) await tx.query(record(worker, idOf(message), message));
      for (const message of messages) await work(message);
    }),
  };
}

/** Waits at each of the plan's pauses, in their order, until the test says to go on. */
function pauses(plan: Plan, tell: (told: Told) => void, handled: () => number): (at: Pause) => Promise<void> {
  const left = [...(plan.pauses ?? [])];
  const waiting = new Map<Pause, () => void>();
  process.on("message", (order: Order) => {
    if (!("go" in order)) return;
    waiting.get(order.go)?.();
    waiting.delete(order.go);
  });
  return async (at) => {
    const [next] = left;
    if (next?.at !== at || handled() < next.after || waiting.has(at)) return;
    left.shift();
    await new Promise<void>((resolve) => {
      waiting.set(at, resolve);
      tell({ paused: at });
    });
  };
}

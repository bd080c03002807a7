// A consumer process that dies where its plan says.
import pg from "pg";
import { brokerSource } from "../../examples/demo/broker-source.ts";
import { batch, createInbox, PermanentError, postgres, receiveMessage, sql } from "../../src/index.ts";
import type { BatchHandler, BuiltStatement, HandlerTx, Message, MessageHandler } from "../../src/index.ts";
import { telemetry } from "../../src/telemetry/channels.ts";
import { killServer, watchPoints } from "./watch-points.ts";
import type { Body, Form, Plan, Point, Told } from "./plan.ts";

const plan = JSON.parse(process.argv[2]!) as Plan;
const pool = new pg.Pool({
  connectionString: plan.url,
  application_name: plan.schema,
  options: `-c search_path=${plan.schema},public`,
  pipeline: true,
  max: (plan.inbox?.lanes ?? 4) + 2,
});
const backends = new Set<number>();
pool.on("connect", (client) => backends.add((client as unknown as { processID: number }).processID));
pool.on("error", () => undefined);

// The test has ended.
process.once("disconnect", () => process.exit());

const tell = (told: Told): void => void process.send?.(told);

function die(by: NonNullable<Plan["die"]>["by"]): void {
  if (typeof by === "number") {
    killServer(by, [...backends]);
    tell({ serverKilled: true });
  } else if (by === "abort") process.abort();
  else process.kill(process.pid, by);
}

telemetry.outcome.subscribe((event) => {
  const { message, outcome } = event as { message: Message | undefined; outcome: string };
  tell({ outcome, id: message?.id });
});
let dead = plan.die === undefined;
function reached(point: Point): void {
  if (dead || plan.die?.at !== point) return;
  dead = true;
  die(plan.die.by);
}
watchPoints(pool, reached);

/** Called by handlers between their two statements, or before they answer. */
function inHandler({ id }: Message): void {
  if (plan.poison !== undefined && id.startsWith(plan.poison.id)) die(plan.poison.by);
  reached("handler");
}

let failedOnce = false;
function failIfAsked({ fail }: Body): void {
  if (fail === "permanent") throw new PermanentError("The message says so.");
  if (fail !== "once" || failedOnce) return;
  failedOnce = true;
  throw new Error("The message fails once.");
}

const bodyOf = (message: Message): Body => message.json() as Body;
const record = (message: Message): BuiltStatement =>
  sql`insert into effect (message_id) values (${message.id})`;
const add = (message: Message): BuiltStatement =>
  sql`update account set balance = balance + ${bodyOf(message).amount} where id = 1`.expecting(1);

const forms: Record<Form, MessageHandler | BatchHandler> = {
  tx: async (message, { tx }) => {
    await tx.query(record(message));
    inHandler(message);
    failIfAsked(bodyOf(message));
    await tx.query(add(message));
  },
  statements: (message) => {
    inHandler(message);
    failIfAsked(bodyOf(message));
    return [record(message), add(message)];
  },
  batch: batch(async (messages: readonly Message[], { tx }: { tx: HandlerTx }) => {
    await tx.query("insert into effect (message_id) select unnest($1::text[])", [
      messages.map(({ id }) => id),
    ]);
    for (const message of messages) inHandler(message);
    for (const message of messages) failIfAsked(bodyOf(message));
    const amount = messages.reduce((sum, message) => sum + bodyOf(message).amount, 0);
    await tx.query("update account set balance = balance + $1 where id = 1", [amount]);
  }),
};

const inbox = createInbox({
  store: postgres(pool, { schema: plan.schema }),
  consumer: "accounting",
  retry: { delayMs: 10 },
  ...plan.inbox,
});
const source = brokerSource((body) => {
  const { id, key } = JSON.parse(body) as Body;
  return receiveMessage({ producer: "payments", id, key, payload: body });
});
await (
  plan.mode === "work"
    ? inbox.work(forms[plan.form], plan.run)
    : inbox.run(source, forms[plan.form], { ...plan.run, mode: plan.mode })
).finished;
await pool.end();

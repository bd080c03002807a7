// A consumer process of the chaos test: works until it is killed, or kills itself at the point it is told.
import pg from "pg";
import { brokerSource } from "../../examples/demo/broker-source.ts";
import {
  batch,
  createInbox,
  InboxError,
  PermanentError,
  postgres,
  receiveMessage,
  sql,
} from "../../src/index.ts";
import type { BatchHandler, BuiltStatement, Message, MessageHandler } from "../../src/index.ts";
import type { Form, Point } from "../crash/plan.ts";
import { killServer, watchPoints } from "../crash/watch-points.ts";
import type { ChaosMode } from "./chaos.ts";
import type { Body } from "./messages.ts";
import { databaseAway, type Arm, type Dying, type KilledServer } from "./protocol.ts";

const pool = new pg.Pool({
  connectionString: process.env["CHAOS_URL"],
  options: `-c search_path=${process.env["CHAOS_SCHEMA"]},public`,
  pipeline: true,
  max: 6,
});
pool.on("error", () => undefined);

const backends = new Set<number>();
pool.on("connect", (client) => backends.add((client as unknown as { processID: number }).processID));
pool.on("remove", (client) => backends.delete((client as unknown as { processID: number }).processID));

let armed: Arm | undefined;
process.on("message", (message: Arm | object) => {
  if ("arm" in message) armed = message;
});
process.once("disconnect", () => process.exit());

function die(dying: Dying["dying"]): void {
  process.send?.({ dying } satisfies Dying);
  process.kill(process.pid, "SIGKILL");
}
function reached(point: Point): void {
  if (armed?.arm !== point) return;
  const { server } = armed;
  armed = undefined;
  if (server === undefined) return die(point);
  killServer(server, [...backends]);
  process.send?.({ killedServer: point } satisfies KilledServer);
}
watchPoints(pool, reached);

const bodyOf = (message: Message): Body => message.json() as Body;

function misbehave(message: Message): void {
  const { kind } = bodyOf(message);
  if (kind === "poison") die("poison");
  reached("handler");
  if (kind === "permanent") throw new PermanentError("This message is wrong.");
  if (kind === "flaky" && Math.random() < 0.3) throw new Error("This message fails now and then.");
}

const record = (message: Message): BuiltStatement =>
  sql`insert into effect (message_id, payload, amount) values (${message.id}, ${message.text()}, ${bodyOf(message).amount})`;
const add = (message: Message): BuiltStatement =>
  sql`update account set balance = balance + ${bodyOf(message).amount} where id = ${bodyOf(message).account}`.expecting(
    1,
  );

const forms: Record<Form, MessageHandler | BatchHandler> = {
  tx: async (message, { tx }) => {
    await tx.query(record(message));
    misbehave(message);
    await tx.query(add(message));
  },
  statements: (message) => {
    misbehave(message);
    return [record(message), add(message)];
  },
  batch: batch(async (messages, { tx }) => {
    await tx.query(
      `insert into effect (message_id, payload, amount)
       select * from unnest($1::text[], $2::text[], $3::int[])`,
      [messages.map(({ id }) => id), messages.map((m) => m.text()), messages.map((m) => bodyOf(m).amount)],
    );
    for (const message of messages) misbehave(message);
    await tx.query(
      `update account a set balance = balance + total
         from (select account, sum(amount) as total from unnest($1::int[], $2::int[]) as p (account, amount)
                group by account) p
        where a.id = p.account`,
      [messages.map((m) => bodyOf(m).account), messages.map((m) => bodyOf(m).amount)],
    );
  }),
};

const inbox = createInbox({
  store: postgres(pool, { schema: process.env["CHAOS_SCHEMA"] }),
  consumer: "accounting",
  retry: { delayMs: 20 },
  maxCrashes: 3,
});
const source = brokerSource((body) => {
  const { id, key } = JSON.parse(body) as { id: string; key: string | undefined };
  return receiveMessage({ producer: "payments", id, key, payload: body });
});
try {
  await inbox.run(source, forms[process.env["CHAOS_FORM"] as Form], {
    workerLeaseMs: 1_000,
    mode: process.env["CHAOS_MODE"] as ChaosMode,
  }).finished;
} catch (error) {
  const cause = error instanceof InboxError ? error.code : (error as { code?: string }).code;
  const away = [
    "store-unavailable",
    "connection-lost",
    "ECONNREFUSED",
    "ECONNRESET",
    "57P03",
    "57P02",
    "57P01",
  ];
  if (away.includes(cause ?? "")) process.exit(databaseAway);
  throw error;
}

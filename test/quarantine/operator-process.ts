// One operator, or one broker that delivers again, in a process of its own. Reads a line of JSON, says READY, and begins
// with the next line.
import { createInterface } from "node:readline";
import pg from "pg";
import { createInbox, createQuarantine, postgres, type HandlerTx, type Message } from "../../src/index.ts";

interface Task {
  readonly url: string;
  readonly schema: string;
  readonly by: string;
  /** `redeliver`: each message again and again until stdin ends. `work`: handles what is pending until then. */
  readonly kind: "retry" | "repair" | "redeliver" | "work";
  readonly entries: readonly string[];
  readonly messages: readonly string[];
}

const handler = async ({ id }: Message, { tx }: { readonly tx: HandlerTx }): Promise<void> => {
  await tx.query("insert into effect (message_id) values ($1)", [id]);
};

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const task = JSON.parse(String((await lines.next()).value)) as Task;
const { schema, by, kind, entries, messages } = task;
const pool = new pg.Pool({
  connectionString: task.url,
  pipeline: true,
  max: 6,
  options: `-c search_path=${schema},public`,
});
const store = postgres(pool, { schema });
const inbox = createInbox({ store, consumer: "accounting" });
const quarantine = createQuarantine({ store });
await store.ping();
console.log("READY");
await lines.next();

let over = false;
const ended = lines.next().then(() => (over = true));
const counts: Record<string, number> = {};
const count = (name: string): void => void (counts[name] = (counts[name] ?? 0) + 1);

if (kind === "work") {
  await using work = inbox.work(handler);
  await ended;
  await work.stop();
} else if (kind === "redeliver") {
  do {
    for (const id of messages) {
      count((await inbox.process({ producer: "shop", id, payload: `{"id":"${id}"}` }, handler)).outcome);
    }
  } while (!over);
} else {
  for (const id of entries) {
    const decider = { by, why: "at the same time" };
    await (
      kind === "retry"
        ? quarantine.retry(id, decider)
        : quarantine.repair(id, { payload: '{"repaired":true}' }, decider)
    ).then(
      () => count("decided"),
      (error: unknown) => count(String((error as { code?: string }).code ?? error)),
    );
  }
}
console.log(JSON.stringify(counts));
await pool.end();
process.exit(0);

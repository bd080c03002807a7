// A server that is killed between the commit and the answer.
import pg from "pg";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createInbox, postgres } from "../../../src/index.ts";
import { httpReceiver, toNodeListener } from "../../../src/sources/http/http.ts";
import { telemetry } from "../../../src/telemetry/channels.ts";
import { record } from "./support.ts";

const { url, schema, at } = JSON.parse(process.argv[2]!) as { url: string; schema: string; at: string };
const pool = new pg.Pool({
  connectionString: url,
  options: `-c search_path=${schema},public`,
  pipeline: true,
});
const inbox = createInbox({ store: postgres(pool, { schema }), consumer: "accounting" });
process.once("disconnect", () => process.exit());

const die = (): void => process.kill(process.pid, "SIGKILL") as unknown as void;
if (at === "committed") telemetry.committed.subscribe(die);
if (at === "handled") telemetry.handled.subscribe(die);

const receiver = httpReceiver({
  inbox,
  identity: "idempotency-key",
  principal: () => ({ producer: "alice" }),
  async handler(message, context) {
    await record(message, context);
    return Response.json({ pid: process.pid }, { status: 201 });
  },
});
const server = createServer(toNodeListener(receiver));
server.listen(0, "127.0.0.1", () => process.send!((server.address() as AddressInfo).port));

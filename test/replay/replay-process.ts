// A replay in a process of its own, which a test kills.
import pg from "pg";
import { replay } from "../../src/replay/replay-run.ts";
import { sql } from "../../src/store/statement.ts";
import { fileOf } from "./support.ts";

const { url, schema, file } = JSON.parse(process.argv[2]!) as { url: string; schema: string; file: string };
const pool = new pg.Pool({
  connectionString: url,
  options: `-c search_path=${schema},public`,
  pipeline: true,
  max: 6,
});
pool.on("error", () => undefined);
process.once("disconnect", () => process.exit());
let handled = 0;
const running = replay(pool, {
  ...{ schema, source: fileOf(file), by: "ann", why: "the sums were wrong" },
  policy: { kind: "rebuild", of: "accounting", consumer: "view" },
  handler: (message) => {
    const { account, amount } = message.json() as { account: string; amount: number };
    process.send?.({ handled: ++handled });
    return [
      sql`insert into done values ('view', ${message.id})`,
      sql`update sums set sum = sum + ${amount} where consumer = 'view' and account = ${account}`,
    ];
  },
});
const report = await running.finished;
process.send?.({ report });
process.disconnect();
await pool.end();

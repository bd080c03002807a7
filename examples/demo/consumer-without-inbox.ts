// The same consumer without an inbox, as most are written: do the work, then acknowledge. It is careful, it never
// acknowledges what it has not committed, and still its total is wrong.
import pg from "pg";
import type { FromConsumer, ToConsumer } from "./broker.ts";
import type { Payment } from "./payments.ts";

const pool = new pg.Pool({ connectionString: process.env["DATABASE_URL"], max: 5 });

process.on("message", ({ deliveries }: ToConsumer) => {
  for (const delivery of deliveries) void handle(delivery);
});

async function handle({ tag, body }: ToConsumer["deliveries"][number]): Promise<void> {
  const { account, cents } = (JSON.parse(body) as { data: Payment }).data;
  // A second copy of the message adds the money again.
  await pool.query("update account set balance = balance + $1 where id = $2", [cents, account]);
  // A process that is killed here has added the money, and the message comes again.
  tell({ settled: [{ tag, ack: true, afterMs: 0 }] });
}

function tell(message: FromConsumer): void {
  process.send?.(message);
}

process.once("disconnect", () => process.exit());
tell({ ready: true });

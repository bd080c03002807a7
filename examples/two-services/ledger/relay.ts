// The relay of the ledger: asks somebody else's service for receipts.
import pg from "pg";
// In a project of your own: from "transactional-inbox" and "transactional-inbox/relay".
import { postgres } from "../../../src/index.ts";
import { createRelay, httpDestination } from "../../../src/relay/relay.ts";

const pool = new pg.Pool({ connectionString: process.env["LEDGER_URL"], max: 5 });

const relay = createRelay({
  store: postgres(pool),
  destinations: { receipts: httpDestination({ url: process.env["RECEIPTS_URL"]!, retryDelayMs: 100 }) },
  // How soon others take over from a relay that was killed. The default of 15 s suits real life.
  leaseMs: 2_000,
  // An effect during which its relay died so often is put aside as dangerous. Here that is no effect's fault.
  maxCrashes: 1_000,
});
process.once("SIGTERM", () => void relay.stop().then(() => pool.end()));
await relay.start();

import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { startLocalPostgres, type LocalPostgres } from "../../../src/local-postgres/local-postgres.ts";
import { setUpLedger } from "../ledger/set-up.ts";
import { setUpOrders } from "../orders/set-up.ts";
import { openQueue, type Queue } from "./queue.ts";

/** What the services stand on: a PostgreSQL each, perhaps a queue, and the file of receipts. */
export interface World {
  readonly databases: { readonly orders: LocalPostgres; readonly ledger: LocalPostgres };
  readonly queue: Queue | undefined;
  readonly receiptsFile: string;
  /** Where customers send their orders. */
  readonly ordersAddress: string;
  /** What the services are told by their environment. */
  readonly env: Readonly<Record<string, string>>;
  close(): Promise<void>;
}

/** Starts the databases and makes their tables. `amqpUrl` not given: the relay hands over to the ledger itself. */
export async function openWorld(amqpUrl: string | undefined): Promise<World> {
  const cleanUps: (() => Promise<void> | void)[] = [];
  const close = async (): Promise<void> => {
    for (let next = cleanUps.pop(); next !== undefined; next = cleanUps.pop()) await next();
  };
  try {
    const directory = mkdtempSync(join(tmpdir(), "two-services-"));
    cleanUps.push(() => rmSync(directory, { recursive: true, force: true }));
    const start = async (name: string): Promise<LocalPostgres> => {
      const server = await startLocalPostgres({ directory: join(directory, name) });
      cleanUps.push(() => server.stop());
      return server;
    };
    const [orders, ledger] = await Promise.all([start("orders"), start("ledger")]);
    await withPool(orders.url, setUpOrders);
    await withPool(ledger.url, setUpLedger);
    const queue = amqpUrl === undefined ? undefined : await openQueue(amqpUrl);
    if (queue !== undefined) cleanUps.push(() => queue.close());
    const [ordersPort, receiptsPort] = await freePorts(2);
    const receiptsFile = join(directory, "receipts.ndjson");
    return {
      databases: { orders, ledger },
      queue,
      receiptsFile,
      ordersAddress: `http://127.0.0.1:${ordersPort}/`,
      env: {
        ORDERS_URL: orders.url,
        LEDGER_URL: ledger.url,
        ORDERS_PORT: String(ordersPort),
        RECEIPTS_PORT: String(receiptsPort),
        RECEIPTS_URL: `http://127.0.0.1:${receiptsPort}/receipts`,
        RECEIPTS_FILE: receiptsFile,
        // Empty where there is no broker: the one that the environment may name is not to be used.
        AMQP_URL: queue?.url ?? "",
        QUEUE: queue?.name ?? "",
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Runs `work` with a pool of its own. */
export async function withPool<T>(url: string, work: (pool: pg.Pool) => Promise<T>): Promise<T> {
  const pool = new pg.Pool({ connectionString: url, max: 2 });
  pool.on("error", () => undefined);
  try {
    return await work(pool);
  } finally {
    await pool.end();
  }
}

/** Ports that nobody listens on now. A service that is started again needs the one it had. */
async function freePorts(count: number): Promise<readonly number[]> {
  const servers = await Promise.all(
    Array.from(
      { length: count },
      () =>
        new Promise<ReturnType<typeof createServer>>((resolve) => {
          const server = createServer().listen(0, "127.0.0.1", () => resolve(server));
        }),
    ),
  );
  const ports = servers.map((server) => (server.address() as AddressInfo).port);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}

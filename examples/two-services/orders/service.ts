// The orders service: takes orders by HTTP. It knows nothing of a broker, and needs none to be there.
import { createServer } from "node:http";
import { json } from "node:stream/consumers";
import pg from "pg";
// In a project of your own: from "transactional-inbox".
import { createOutbox, postgres } from "../../../src/index.ts";
import type { Order, OrderPlaced } from "../order-placed.ts";

const pool = new pg.Pool({ connectionString: process.env["ORDERS_URL"], max: 8 });
const outbox = createOutbox({ store: postgres(pool), producer: "orders" });

/** Places an order, once for each id. */
async function place({ id, customer, cents }: Order): Promise<"placed" | "known"> {
  const client = await pool.connect();
  try {
    await client.query("begin");
    // The row stays locked until the end, so the orders of one customer come one after another, and their effects, too.
    const { rows } = await client.query<{ number: number }>(
      `insert into customer (id, orders) values ($1, 1)
       on conflict (id) do update set orders = customer.orders + 1 returning orders as number`,
      [customer],
    );
    const { number } = rows[0]!;
    const { rowCount } = await client.query(
      "insert into orders (id, customer, number, cents) values ($1, $2, $3, $4) on conflict (id) do nothing",
      [id, customer, number, cents],
    );
    if (rowCount === 0) {
      await client.query("rollback");
      return "known";
    }
    // Only asked for here: if this transaction commits, a relay sends it; if it does not, nobody ever hears of it.
    const placed: OrderPlaced = { order: id, customer, number, cents };
    await outbox.send(client, { id: `placed/${id}`, destination: "ledger", key: customer, json: placed });
    await client.query("commit");
    return "placed";
  } catch (error) {
    await client.query("rollback").catch(() => undefined);
    throw error;
  } finally {
    client.release();
  }
}

const server = createServer((request, response) => {
  void json(request)
    .then((order) => place(order as Order))
    .then(
      (what) => response.writeHead(what === "placed" ? 201 : 200).end(what),
      // It may have been placed all the same: the customer asks again, with the same id.
      (error: Error) => response.writeHead(503).end(error.message),
    );
});
server.listen(Number(process.env["ORDERS_PORT"]), "127.0.0.1");

process.once("SIGTERM", () => server.close(() => void pool.end()));

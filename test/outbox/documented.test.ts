import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { createInbox } from "../../src/inbox/create-inbox.ts";
import { createOutbox } from "../../src/outbox/outbox.ts";
import { createRelay, httpDestination, inboxDestination } from "../../src/relay/relay.ts";
import { onTestEnd } from "../support/cleanup.ts";
import { message } from "../inbox/support.ts";
import { until } from "../relay/support.ts";
import { testOutbox } from "./support.ts";

const flat = (text: string): string => text.replace(/\s+/g, " ").trim();
const read = (path: string): string => readFileSync(join(import.meta.dirname, path), "utf8");

test("the examples of docs/outbox.md are those that run here", () => {
  const examples = [...read("../../docs/outbox.md").matchAll(/^```ts\n([\s\S]*?)^```/gm)];
  assert.ok(examples.length >= 4);
  const own = flat(read("documented.test.ts") + read("ops-documented.test.ts"));
  for (const [, text = ""] of examples) assert.ok(own.includes(flat(text)), text);
});

test("the examples of docs/outbox.md, one after another: asked for, sent, applied once", async (t) => {
  const { store, pool } = await testOutbox(t);
  const there = await testOutbox(t);
  const ledgerStore = there.store;
  await pool.query("create table orders (id text primary key)");
  await there.pool.query("create table entry (id text primary key)");
  const mails: string[] = [];
  const server = createServer((request, response) => {
    mails.push(String(request.headers["idempotency-key"]));
    request.resume().on("end", () => response.end());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestEnd(t, () => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const secret = `whsec_${Buffer.alloc(24, 1).toString("base64")}`;
  const client = await pool.connect();
  onTestEnd(t, () => client.release());
  {
    const order = "o1";
    const outbox = createOutbox({ store, producer: "orders" });
    await client.query("begin");
    await client.query("insert into orders (id) values ($1)", [order]);
    await outbox.send(client, { id: `receipt/${order}`, destination: "email", key: order, json: { order } });
    await client.query("commit");
  }
  {
    const inbox = createInbox({ store, consumer: "orders" });
    for (let round = 0; round < 2; round++) {
      await once(message("o2"));
    }
    async function once(message: Parameters<typeof inbox.process>[0]): Promise<void> {
      await inbox.process(message, async (given, { tx, outbox }) => {
        await tx.query("insert into orders (id) values ($1)", [given.id]);
        outbox.send({ destination: "ledger", key: given.id, payload: given.bytes });
      });
    }
  }
  const noted: string[] = [];
  const note = (id: string): Promise<number> => Promise.resolve(noted.push(id));
  const relay = createRelay({
    store,
    destinations: {
      email: httpDestination({ url, secret }),
      ledger: inboxDestination({ store: ledgerStore, consumer: "ledger" }),
      audit: async (effect) => ({ noted: await note(effect.id) }),
    },
  });
  await relay.start();
  onTestEnd(t, () => relay.stop());
  const work = createInbox({ store: ledgerStore, consumer: "ledger" }).work(async (given, { tx }) => {
    await tx.query("insert into entry (id) values ($1)", [given.text()]);
  });
  onTestEnd(t, () => work.stop().then(() => undefined));
  const entries = await until(
    () => there.pool.query("select id from entry"),
    ({ rowCount }) => rowCount === 1,
  );
  assert.deepEqual(entries.rows, [{ id: '{"id":"o2"}' }]);
  await until(() => mails.length === 1);
  assert.deepEqual(mails, ['"receipt/o1"']);
});

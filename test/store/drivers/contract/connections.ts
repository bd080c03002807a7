import assert from "node:assert/strict";
import { test } from "node:test";
import { InboxError } from "../../../../src/errors.ts";
import type { DriverConnection } from "../../../../src/store/postgres/driver.ts";
import { isLost, pidOf, until, type Contract } from "./bench.ts";

/** Connections come in time, and go back in order. */
export function connectionsContract({ subject, contract }: Contract): void {
  contract(
    "connect gives up in time, and the late connection goes back",
    async (_t, b) => {
      const only = await b.driver.connect(30_000);
      const unavailable = (error: unknown) =>
        error instanceof InboxError && error.code === "store-unavailable";
      await assert.rejects(b.driver.connect(30), unavailable);
      await assert.rejects(b.driver.connect(0), unavailable);
      only.release();
      const next = await b.driver.connect(30_000);
      await next.query("select 1");
      next.release();
    },
    { max: 1 },
  );

  void test(`${subject.name}: a server that is not there is store-unavailable`, async (t) => {
    const driver = subject.open(t, "postgres://postgres@127.0.0.1:1/postgres");
    await assert.rejects(
      driver.connect(30_000),
      (error) => error instanceof InboxError && error.code === "store-unavailable" && error.retryable,
    );
  });

  if (subject.queryTimeout) {
    contract(
      "a read timeout at COMMIT leaves the connection in doubt, never used again",
      async (_t, b) => {
        const [schema] = b.table.split(".");
        await b.admin.query(`
          create function ${schema}.slowly() returns trigger language plpgsql as
            'begin perform pg_sleep(3); return null; end';
          create constraint trigger slow after insert on ${b.table}
            deferrable initially deferred for each row execute function ${schema}.slowly()`);
        const connection = await b.driver.connect(30_000);
        const pid = await pidOf(connection);
        await connection.query("begin");
        await connection.query(`insert into ${b.table} (id) values ($1::text)`, ["a"]);
        await assert.rejects(connection.query("commit"), isLost);
        assert.equal(connection.status(), "lost");
        await assert.rejects(connection.query("select 1"), isLost);
        connection.release();
        const next = await b.driver.connect(30_000);
        if (subject.direct) assert.notEqual(await pidOf(next), pid);
        next.release();
        await until(async () => (await b.ids()).length === 1);
      },
      { queryTimeoutMs: 1_500 },
    );
  }

  contract(
    "release closes what is not idle: an open, a failed and a running transaction",
    async (_t, b) => {
      const insert = `insert into ${b.table} (id) values ($1::text)`;
      const leave: ((connection: DriverConnection) => Promise<unknown>)[] = [
        (connection) => connection.query("select 1"),
        (connection) => connection.query("select 1 / $1::int", [0]).catch(() => undefined),
        async (connection) => void connection.query("select pg_sleep($1::float8)", [0.2]),
        async (connection) => void connection.query(insert, ["floating"]),
      ];
      for (const last of leave) {
        const connection = await b.driver.connect(30_000);
        await connection.query("begin");
        await connection.query(insert, ["left open"]);
        await last(connection);
        connection.release();
        await assert.rejects(connection.query(insert, ["after release"]), isLost);
        const next = await b.driver.connect(30_000);
        assert.equal(next.status(), "idle");
        // Waits for the lock of the one before, if that transaction is still ending.
        await next.query(insert, ["probe"]);
        await next.query(insert, ["left open"]);
        await next.query(`delete from ${b.table}`);
        next.release();
      }
      assert.deepEqual(await b.ids(), []);
    },
    { max: 1 },
  );
}

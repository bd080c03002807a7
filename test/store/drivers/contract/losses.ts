import assert from "node:assert/strict";
import { setImmediate as turn } from "node:timers/promises";
import { isLost, lossOf, pidOf, terminate, until, type Contract } from "./bench.ts";

/** What is known when a connection is lost. */
export function lossesContract({ contract, faulty }: Contract): void {
  contract("a connection killed while idle in its transaction is lost for good", async (_t, b) => {
    const connection = await b.driver.connect(30_000);
    const losses: Error[] = [];
    connection.onLost((error) => losses.push(error));
    const lost = lossOf(connection);
    await connection.query("begin");
    await connection.query(`insert into ${b.table} (id) values ($1::text)`, ["pre"]);
    await terminate(b, await pidOf(connection));
    assert.ok(isLost(await lost));
    assert.equal(connection.status(), "lost");
    // The pool goes on meanwhile, and may take the same slot for a new connection.
    for (let round = 0; round < 6; round++) {
      const other = await b.driver.connect(30_000);
      await other.query("select 1");
      other.release();
    }
    await assert.rejects(connection.query(`insert into ${b.table} (id) values ($1::text)`, ["post"]), isLost);
    await assert.rejects(connection.query("commit"), isLost);
    let told = 0;
    connection.onLost(() => told++);
    assert.equal(told, 1);
    connection.release();
    connection.release();
    assert.equal(losses.length, 1);
    assert.deepEqual(await b.ids(), []);
  });

  contract("a connection killed inside a statement rejects it and all that wait behind it", async (_t, b) => {
    const connection = await b.driver.connect(30_000);
    const lost = lossOf(connection);
    await connection.query("begin");
    const pid = await pidOf(connection);
    const burst = [
      connection.query("select pg_sleep($1::int)", [30]),
      connection.query(`insert into ${b.table} (id) values ($1::text)`, ["late"]),
      connection.query("commit"),
    ];
    await until(async () => {
      const { rows } = await b.admin.query(
        "select 1 from pg_stat_activity where pid = $1 and wait_event = 'PgSleep'",
        [pid],
      );
      return rows.length === 1;
    });
    await terminate(b, pid);
    for (const answer of await Promise.allSettled(burst)) {
      assert.ok(answer.status === "rejected" && isLost(answer.reason));
    }
    await lost;
    connection.release();
    assert.deepEqual(await b.ids(), []);
  });

  contract("connections killed while busy leave the pool and the process in order", async (_t, b) => {
    for (let round = 0; round < 12; round++) {
      const connection = await b.driver.connect(30_000);
      await connection.query("begin");
      const pid = await pidOf(connection);
      let running = 0;
      const busy = (async () => {
        for (;;) {
          await connection.query(`update ${b.table} set note = $1::text where id = $2::text`, ["x", "none"]);
          running++;
        }
      })();
      busy.catch(() => undefined);
      while (running < 1 + round * 3) await turn();
      await terminate(b, pid);
      await assert.rejects(busy, isLost);
      connection.release();
    }
    const all = await Promise.all([1, 2, 3, 4].map(() => b.driver.connect(30_000)));
    for (const connection of all) connection.release();
  });

  faulty("a request that never arrived is lost, and nothing is stored", async (_t, b, proxy) => {
    const connection = await b.driver.connect(30_000);
    await connection.query("begin");
    proxy.cutBefore("never arrives");
    const statement = connection.query(`insert into ${b.table} (id) values ($1::text)`, ["never arrives"]);
    await assert.rejects(statement, isLost);
    assert.equal(connection.status(), "lost");
    connection.release();
    assert.deepEqual(await b.ids(), []);
  });

  faulty("a statement whose answer is cut is lost, and nothing is stored", async (_t, b, proxy) => {
    const connection = await b.driver.connect(30_000);
    await connection.query("begin");
    proxy.dropReplyTo("no answer");
    await assert.rejects(
      connection.query(`insert into ${b.table} (id) values ($1::text)`, ["no answer"]),
      isLost,
    );
    await assert.rejects(connection.query("commit"), isLost);
    connection.release();
    assert.deepEqual(await b.ids(), []);
  });

  faulty("a COMMIT that never arrived is lost, and nothing is stored", async (_t, b, proxy) => {
    const connection = await b.driver.connect(30_000);
    await connection.query("begin");
    await connection.query(`insert into ${b.table} (id) values ($1::text)`, ["a"]);
    proxy.cutBefore("commit");
    await assert.rejects(connection.query("commit"), isLost);
    connection.release();
    assert.deepEqual(await b.ids(), []);
  });

  faulty("a COMMIT whose answer is cut is lost, though the row is there", async (_t, b, proxy) => {
    const connection = await b.driver.connect(30_000);
    await connection.query("begin");
    await connection.query(`insert into ${b.table} (id) values ($1::text)`, ["a"]);
    proxy.dropReplyTo("commit");
    await assert.rejects(connection.query("commit"), isLost);
    assert.equal(connection.status(), "lost");
    connection.release();
    await until(async () => (await b.ids()).length === 1);
    const next = await b.driver.connect(30_000);
    assert.deepEqual((await next.query(`select id from ${b.table}`)).rows, [{ id: "a" }]);
    next.release();
  });

  faulty("a server that went silent holds nobody up after discard", async (_t, b, proxy) => {
    const connection = await b.driver.connect(30_000);
    await connection.query("begin");
    proxy.goSilentAfter("silent");
    const statement = connection.query("select $1::text", ["silent"]);
    const follower = connection.query("select 1");
    await turn();
    connection.discard();
    await assert.rejects(statement, isLost);
    await assert.rejects(follower, isLost);
    await assert.rejects(connection.query("select 1"), isLost);
    const next = await b.driver.connect(30_000);
    await next.query("select 1");
    next.release();
  });

  faulty("the loss of idle connections does not end the process", async (_t, b, proxy) => {
    const held = await Promise.all([1, 2, 3].map(() => b.driver.connect(30_000)));
    await Promise.all(held.map((connection) => connection.query("select 1")));
    for (const connection of held) connection.release();
    proxy.cutAll();
    await until(async () => {
      const connection = await b.driver.connect(30_000).catch(() => null);
      const works = await connection?.query("select 1").then(
        () => true,
        () => false,
      );
      connection?.release();
      return works === true;
    });
  });
}

import assert from "node:assert/strict";
import { setImmediate as turn } from "node:timers/promises";
import { test, type TestContext } from "node:test";
import fc from "fast-check";
import type pg from "pg";
import { InboxError } from "../../../src/errors.ts";
import type { Driver, DriverConnection } from "../../../src/store/postgres/driver.ts";
import { faultProxy, type FaultProxy } from "../../support/fault-proxy.ts";
import { testPool, testSchema, testUrl } from "../../support/postgres.ts";
import type { OpenOptions, Subject } from "./subject.ts";

interface Bench {
  readonly driver: Driver;
  /** Straight to the server, whatever the driver goes through. */
  readonly admin: pg.Pool;
  /** A table (id text primary key, note text) of the test's own. */
  readonly table: string;
  ids(): Promise<string[]>;
}

const code = (error: unknown): unknown => (error as { code?: unknown } | null)?.code;
const isLost = (error: unknown): boolean => error instanceof InboxError && error.code === "connection-lost";

/** What every driver owes the store. `reach` gives the URL the driver connects to, or undefined to skip. */
export function driverContract(
  subject: Subject,
  reach: (t: TestContext) => Promise<string | undefined> = testUrl,
): void {
  const bench = async (t: TestContext, url: string, options?: OpenOptions): Promise<Bench> => {
    const schema = await testSchema(t);
    const admin = await testPool(t);
    const table = `${schema}.entry`;
    await admin.query(`create table ${table} (id text primary key, note text)`);
    const ids = async () =>
      (await admin.query<{ id: string }>(`select id from ${table} order by id`)).rows.map((row) => row.id);
    return { driver: subject.open(t, url, options), admin, table, ids };
  };

  const contract = (
    name: string,
    run: (t: TestContext, b: Bench) => Promise<void>,
    options?: OpenOptions,
  ): void => {
    void test(`${subject.name}: ${name}`, { timeout: 60_000 }, async (t) => {
      const url = await reach(t);
      if (url !== undefined) await run(t, await bench(t, url, options));
    });
  };

  const faulty = (
    name: string,
    run: (t: TestContext, b: Bench, proxy: FaultProxy) => Promise<void>,
    options?: OpenOptions,
  ): void => {
    void test(`${subject.name}: ${name}`, { timeout: 60_000 }, async (t) => {
      const url = await reach(t);
      if (url === undefined) return;
      const target = new URL(url);
      const proxy = await faultProxy(t, { host: target.hostname, port: Number(target.port || 5432) });
      target.hostname = proxy.host;
      target.port = String(proxy.port);
      await run(t, await bench(t, target.href, options), proxy);
    });
  };

  const pidOf = async (connection: DriverConnection): Promise<number> =>
    (await connection.query<{ pid: number }>("select pg_backend_pid() as pid")).rows[0]!.pid;
  const terminate = (b: Bench, pid: number) => b.admin.query("select pg_terminate_backend($1)", [pid]);
  const lossOf = (connection: DriverConnection) =>
    new Promise<Error>((resolve) => connection.onLost(resolve));

  contract("says what it is", async (_t, { driver }) => {
    assert.equal(driver.pipelined, subject.pipelined);
    assert.equal(driver.maxConnections, 4);
  });

  contract("answers a burst of any statements in order, inside a transaction and outside", async (_t, b) => {
    const kinds = ["int", "text", "two", "rows", "show", "insert", "update", "none"] as const;
    let next = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom(...kinds), { maxLength: 40 }),
        fc.boolean(),
        async (plan, inside) => {
          const connection = await b.driver.connect(5_000);
          if (inside) await connection.query("begin");
          const answers = plan.map((kind) => {
            const n = next++;
            switch (kind) {
              case "int":
                return [connection.query("select $1::int as n", [n]), [{ n }], "SELECT"] as const;
              case "text":
                return [
                  connection.query("select $1::text as t", [`t${n}`]),
                  [{ t: `t${n}` }],
                  "SELECT",
                ] as const;
              case "two":
                return [
                  connection.query("select $1::int as a, $2::text as b", [n, "b"]),
                  [{ a: n, b: "b" }],
                  "SELECT",
                ] as const;
              case "rows":
                return [
                  connection.query("select i from generate_series($1::int, $1::int + 2) i", [n]),
                  [{ i: n }, { i: n + 1 }, { i: n + 2 }],
                  "SELECT",
                ] as const;
              case "show":
                return [connection.query("show server_version_num"), undefined, "SHOW"] as const;
              case "insert":
                return [
                  connection.query(`insert into ${b.table} (id) values ($1::text) returning id`, [`k${n}`]),
                  [{ id: `k${n}` }],
                  "INSERT",
                ] as const;
              case "update":
                return [
                  connection.query(`update ${b.table} set note = $1::text where id = $2::text`, [
                    "x",
                    `none${n}`,
                  ]),
                  [],
                  "UPDATE",
                ] as const;
              case "none":
                return [connection.query(`select id from ${b.table} where false`), [], "SELECT"] as const;
            }
          });
          for (const [answer, rows, command] of answers) {
            const result = await answer;
            assert.equal(result.command, command);
            if (rows === undefined) continue;
            assert.deepEqual(result.rows, rows);
            assert.equal(result.rowCount, rows.length);
          }
          if (inside) assert.equal((await connection.query("commit")).command, "COMMIT");
          connection.release();
        },
      ),
      { numRuns: 40, endOnFailure: true },
    );
  });

  contract(
    "gives the error of a burst to its own statement, 25P02 to later ones, ROLLBACK to COMMIT",
    async (_t, b) => {
      const connection = await b.driver.connect(5_000);
      const insert = `insert into ${b.table} (id) values ($1::text)`;
      await connection.query("begin");
      const burst = [
        connection.query(insert, ["a"]),
        connection.query("select 1 / $1::int", [0]),
        connection.query(insert, ["b"]),
        connection.query("select 1"),
        connection.query("commit"),
        connection.query("select 7 as seven"),
      ];
      const [first, second, third, fourth, commit, after] = await Promise.allSettled(burst);
      assert.equal(first?.status, "fulfilled");
      assert.equal(second?.status === "rejected" && code(second.reason), "22012");
      assert.equal(third?.status === "rejected" && code(third.reason), "25P02");
      assert.equal(fourth?.status === "rejected" && code(fourth.reason), "25P02");
      assert.equal(commit?.status === "fulfilled" && commit.value.command, "ROLLBACK");
      assert.deepEqual(after?.status === "fulfilled" && after.value.rows, [{ seven: 7 }]);
      assert.equal(connection.status(), "idle");
      connection.release();
      assert.deepEqual(await b.ids(), []);
    },
  );

  contract("says 25P02 to the next flight too, though it repeats the text that failed", async (_t, b) => {
    const connection = await b.driver.connect(5_000);
    await connection.query("begin");
    const broken = "select no_such_function($1::int)";
    const flights: Promise<unknown>[] = [];
    for (let flight = 0; flight < 3; flight++) {
      flights.push(connection.query(broken, [flight]));
      // The flight leaves; its answer cannot be here yet.
      await new Promise<void>((resolve) => process.nextTick(resolve));
    }
    const [first, ...later] = await Promise.allSettled(flights);
    assert.equal(first?.status === "rejected" && code(first.reason), "42883");
    for (const answer of later) assert.equal(answer.status === "rejected" && code(answer.reason), "25P02");
    assert.equal((await connection.query("commit")).command, "ROLLBACK");
    connection.release();
  });

  contract("makes no transaction of a burst that has none", async (_t, b) => {
    const connection = await b.driver.connect(5_000);
    const insert = `insert into ${b.table} (id) values ($1::text)`;
    await Promise.allSettled([
      connection.query(insert, ["a"]),
      connection.query(insert, ["b"]),
      connection.query("select 1 / $1::int", [0]),
      connection.query(insert, ["c"]),
    ]);
    await connection.query("begin");
    const [, , , failed] = await Promise.allSettled([
      connection.query(insert, ["d"]),
      connection.query("commit"),
      connection.query(insert, ["e"]),
      connection.query(insert, ["a"]),
      connection.query(insert, ["f"]),
    ]);
    assert.equal(failed?.status === "rejected" && code(failed.reason), "23505");
    connection.release();
    assert.deepEqual(await b.ids(), ["a", "b", "c", "d", "e", "f"]);
  });

  contract("follows the transaction's status", async (_t, b) => {
    const connection = await b.driver.connect(5_000);
    assert.equal(connection.status(), "idle");
    await connection.query("begin isolation level repeatable read");
    assert.equal(connection.status(), "open");
    await connection.query("savepoint s");
    await assert.rejects(connection.query("select 1 / $1::int", [0]), { code: "22012" });
    assert.equal(connection.status(), "failed");
    await connection.query("rollback to savepoint s");
    assert.equal(connection.status(), "open");
    await connection.query("select 1");
    assert.equal(connection.status(), "open");
    assert.equal((await connection.query("commit")).command, "COMMIT");
    assert.equal(connection.status(), "idle");
    await assert.rejects(connection.query("select 1 / $1::int", [0]), { code: "22012" });
    assert.equal(connection.status(), "idle");
    connection.release();
  });

  contract("a connection killed while idle in its transaction is lost for good", async (_t, b) => {
    const connection = await b.driver.connect(5_000);
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
      const other = await b.driver.connect(5_000);
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
    const connection = await b.driver.connect(5_000);
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
      const connection = await b.driver.connect(10_000);
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
    const all = await Promise.all([1, 2, 3, 4].map(() => b.driver.connect(10_000)));
    for (const connection of all) connection.release();
  });

  faulty("a request that never arrived is lost, and nothing is stored", async (_t, b, proxy) => {
    const connection = await b.driver.connect(5_000);
    await connection.query("begin");
    proxy.cutBefore("never arrives");
    const statement = connection.query(`insert into ${b.table} (id) values ($1::text)`, ["never arrives"]);
    await assert.rejects(statement, isLost);
    assert.equal(connection.status(), "lost");
    connection.release();
    assert.deepEqual(await b.ids(), []);
  });

  faulty("a statement whose answer is cut is lost, and nothing is stored", async (_t, b, proxy) => {
    const connection = await b.driver.connect(5_000);
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
    const connection = await b.driver.connect(5_000);
    await connection.query("begin");
    await connection.query(`insert into ${b.table} (id) values ($1::text)`, ["a"]);
    proxy.cutBefore("commit");
    await assert.rejects(connection.query("commit"), isLost);
    connection.release();
    assert.deepEqual(await b.ids(), []);
  });

  faulty("a COMMIT whose answer is cut is lost, though the row is there", async (_t, b, proxy) => {
    const connection = await b.driver.connect(5_000);
    await connection.query("begin");
    await connection.query(`insert into ${b.table} (id) values ($1::text)`, ["a"]);
    proxy.dropReplyTo("commit");
    await assert.rejects(connection.query("commit"), isLost);
    assert.equal(connection.status(), "lost");
    connection.release();
    await until(async () => (await b.ids()).length === 1);
    const next = await b.driver.connect(5_000);
    assert.deepEqual((await next.query(`select id from ${b.table}`)).rows, [{ id: "a" }]);
    next.release();
  });

  faulty("a server that went silent holds nobody up after discard", async (_t, b, proxy) => {
    const connection = await b.driver.connect(5_000);
    await connection.query("begin");
    proxy.goSilentAfter("silent");
    const statement = connection.query("select $1::text", ["silent"]);
    const follower = connection.query("select 1");
    await turn();
    connection.discard();
    await assert.rejects(statement, isLost);
    await assert.rejects(follower, isLost);
    await assert.rejects(connection.query("select 1"), isLost);
    const next = await b.driver.connect(5_000);
    await next.query("select 1");
    next.release();
  });

  faulty("the loss of idle connections does not end the process", async (_t, b, proxy) => {
    const held = await Promise.all([1, 2, 3].map(() => b.driver.connect(5_000)));
    await Promise.all(held.map((connection) => connection.query("select 1")));
    for (const connection of held) connection.release();
    proxy.cutAll();
    await until(async () => {
      const connection = await b.driver.connect(5_000).catch(() => null);
      const works = await connection?.query("select 1").then(
        () => true,
        () => false,
      );
      connection?.release();
      return works === true;
    });
  });

  contract(
    "connect gives up in time, and the late connection goes back",
    async (_t, b) => {
      const only = await b.driver.connect(5_000);
      const unavailable = (error: unknown) =>
        error instanceof InboxError && error.code === "store-unavailable";
      await assert.rejects(b.driver.connect(30), unavailable);
      await assert.rejects(b.driver.connect(0), unavailable);
      only.release();
      const next = await b.driver.connect(5_000);
      await next.query("select 1");
      next.release();
    },
    { max: 1 },
  );

  void test(`${subject.name}: a server that is not there is store-unavailable`, async (t) => {
    const driver = subject.open(t, "postgres://postgres@127.0.0.1:1/postgres");
    await assert.rejects(
      driver.connect(5_000),
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
            'begin perform pg_sleep(1.2); return null; end';
          create constraint trigger slow after insert on ${b.table}
            deferrable initially deferred for each row execute function ${schema}.slowly()`);
        const connection = await b.driver.connect(5_000);
        const pid = await pidOf(connection);
        await connection.query("begin");
        await connection.query(`insert into ${b.table} (id) values ($1::text)`, ["a"]);
        await assert.rejects(connection.query("commit"), isLost);
        assert.equal(connection.status(), "lost");
        await assert.rejects(connection.query("select 1"), isLost);
        connection.release();
        const next = await b.driver.connect(5_000);
        if (subject.direct) assert.notEqual(await pidOf(next), pid);
        next.release();
        await until(async () => (await b.ids()).length === 1);
      },
      { queryTimeoutMs: 400 },
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
        const connection = await b.driver.connect(10_000);
        await connection.query("begin");
        await connection.query(insert, ["left open"]);
        await last(connection);
        connection.release();
        await assert.rejects(connection.query(insert, ["after release"]), isLost);
        const next = await b.driver.connect(10_000);
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

  contract("values come back as they were sent", async (_t, b) => {
    const connection = await b.driver.connect(5_000);
    const one = async (text: string, value: unknown): Promise<unknown> =>
      (await connection.query<{ v: unknown }>(`select ${text} as v`, [value])).rows[0]!.v;
    const bytes = new Uint8Array([0, 1, 2, 127, 128, 255]);
    for (const open of [false, true]) {
      if (open) await connection.query("begin");
      assert.deepEqual(new Uint8Array((await one("$1::bytea", bytes)) as Uint8Array), bytes);
      assert.deepEqual(new Uint8Array((await one("$1::bytea", Buffer.from(bytes))) as Uint8Array), bytes);
      assert.equal(await one("encode(decode($1::text, 'hex'), 'hex')", "00ff"), "00ff");
      assert.equal(await one("$1::bigint::text", 9_007_199_254_740_993n), "9007199254740993");
      assert.equal(await one("$1::bigint::text", "9223372036854775807"), "9223372036854775807");
      assert.deepEqual(
        await one("$1::timestamptz", new Date(1_700_000_000_123)),
        new Date(1_700_000_000_123),
      );
      assert.equal(await one("$1::text", null), null);
      assert.equal(await one("$1::text", undefined), null);
      assert.equal(await one("$1::bool", true), true);
      assert.equal(await one("$1::float8", 0.1), 0.1);
      assert.equal(await one("$1::text", "ünï \u{1f600} \\ ' \" \n"), "ünï \u{1f600} \\ ' \" \n");
      assert.deepEqual(await one("$1::text::text[]", '{"a,b","c\\"d",""}'), ["a,b", 'c"d', ""]);
      if (open) await connection.query("commit");
    }
    connection.release();
  });

  contract("an array of 70,000 is one parameter, 70,000 parameters are refused", async (_t, b) => {
    const connection = await b.driver.connect(5_000);
    const ids = Array.from({ length: 70_000 }, (_, i) => `id-${i}`);
    await connection.query("begin");
    const { rows } = await connection.query(
      "select count(*)::int as n, max(id) as last from unnest($1::text::text[]) id",
      [`{${ids.join(",")}}`],
    );
    assert.deepEqual(rows, [{ n: 70_000, last: "id-9999" }]);
    const places = ids.map((_, i) => `$${i + 1}::text`).join(",");
    await assert.rejects(connection.query(`select ${places}`, ids), /at most 65535 parameters.*unnest/);
    assert.equal(connection.status(), "open");
    assert.equal((await connection.query("commit")).command, "COMMIT");
    connection.release();
  });

  contract("a NUL is refused and the connection goes on", async (_t, b) => {
    const connection = await b.driver.connect(5_000);
    await assert.rejects(connection.query("select $1::text as t", ["a\0b"]), { code: "22021" });
    await assert.rejects(connection.query("select 'a\0b'"), /NUL/);
    await assert.rejects(connection.query("select 1\0; drop table x", []), /NUL/);
    await assert.rejects(connection.query(undefined as never), TypeError);
    await assert.rejects(connection.query("select 1", "no array" as never), TypeError);
    assert.deepEqual((await connection.query("select $1::text as t", ["fine"])).rows, [{ t: "fine" }]);
    connection.release();
  });

  contract("a value the driver cannot write fails its own statement alone", async (_t, b) => {
    const connection = await b.driver.connect(5_000);
    await connection.query("begin");
    await connection.query("select 1");
    await assert.rejects(connection.query("select $1::jsonb", [{ big: 1n }]), TypeError);
    assert.deepEqual((await connection.query("select $1::int as n", [1])).rows, [{ n: 1 }]);
    assert.equal((await connection.query("commit")).command, "COMMIT");
    connection.release();
  });

  contract("statements nobody waits for never end the process", async (t, b) => {
    const unhandled: unknown[] = [];
    const listen = (reason: unknown) => unhandled.push(reason);
    process.on("unhandledRejection", listen);
    t.after(() => process.off("unhandledRejection", listen));
    const connection = await b.driver.connect(5_000);
    void connection.query("begin");
    void connection.query("select 1 / $1::int", [0]);
    void connection.query("select $1::int", [1]);
    void connection.query("select 'a\0b'");
    await connection.query("rollback");
    const lost = lossOf(connection);
    // A pooler lends one server connection for as long as the transaction lasts.
    void connection.query("begin");
    const pid = await pidOf(connection);
    void connection.query("select pg_sleep($1::int)", [30]);
    void connection.query("select $1::int", [1]);
    await turn();
    await terminate(b, pid);
    await lost;
    void connection.query("select $1::int", [1]);
    connection.release();
    void connection.query("select $1::int", [1]);
    for (let i = 0; i < 5; i++) await turn();
    assert.deepEqual(unhandled, []);
  });
}

/** Asks again until it is so; the test's own timeout is the end. */
async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await turn();
}

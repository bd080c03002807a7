import assert from "node:assert/strict";
import fc from "fast-check";
import { code, type Contract } from "./bench.ts";

/** What statements are answered, alone and in bursts. */
export function answersContract({ subject, contract }: Contract): void {
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
}

import assert from "node:assert/strict";
import { setImmediate as turn } from "node:timers/promises";
import { lossOf, pidOf, terminate, type Contract } from "./bench.ts";

/** What goes to the server comes back the same. */
export function valuesContract({ contract }: Contract): void {
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

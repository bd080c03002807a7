import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import type pg from "pg";
import { seededRandom } from "../../examples/demo/random.ts";
import { createInbox, migrate, postgres } from "../../src/index.ts";
import type { MessageHandler } from "../../src/index.ts";
import { testDatabase } from "../support/postgres.ts";
import type { Scope } from "../support/cleanup.ts";
import type { ChaosReport } from "./chaos.ts";
import { check } from "./check.ts";
import { faultsOf } from "./faults.ts";
import { createMessages, type Messages } from "./messages.ts";

const tsx = fileURLToPath(import.meta.resolve("tsx"));

const run = (args: readonly string[]): Promise<{ code: number; stdout: string; stderr: string }> =>
  new Promise((resolve) => {
    const command = ["--import", tsx, join(import.meta.dirname, "main.ts"), ...args];
    execFile(process.execPath, command, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
    );
  });

for (const mode of ["inline", "store-first"] as const)
  test(`survives eleven kills, one of them of the server, and says so: ${mode}`, async () => {
    const { code, stdout, stderr } = await run(["--kills", "11", "--seed", "3", "--mode", mode, "--json"]);
    assert.equal(code, 0, stderr);
    const report = JSON.parse(stdout) as ChaosReport;
    assert.equal(report.mode, mode);
    assert.equal(report.kills, 11);
    assert.equal(report.serverKills, 1);
    assert.equal(report.lost, 0);
    assert.equal(report.doubled, 0);
    assert.ok(report.applied > 20, `${report.applied} applied`);
    assert.ok(report.redeliveries > 0);
  });

test("refuses options it does not know, and says how it is used", async () => {
  for (const args of [
    ["--kills", "none"],
    ["--kill", "3"],
    ["--kills", "0"],
    ["--mode", "none"],
  ]) {
    const { code, stdout, stderr } = await run(args);
    assert.equal(code, 2);
    assert.equal(stdout, "");
    assert.match(stderr, /Usage: npm run chaos/);
  }
});

test("fails for whatever is not as it must be", () => {
  const good: ChaosReport = {
    ...{
      mode: "inline",
      seed: 1,
      kills: 5,
      serverKills: 0,
      killedAt: {},
      poisonDeaths: 0,
      deliveries: 9,
      redeliveries: 1,
    },
    ...{
      unsettled: 0,
      messages: 8,
      applied: 8,
      quarantined: {},
      lost: 0,
      doubled: 0,
      wrong: [],
      durationMs: 1,
    },
  };
  assert.deepEqual(faultsOf(good, 5), []);
  for (const bad of [{ lost: 1 }, { doubled: 1 }, { unsettled: 1 }, { kills: 4 }, { wrong: ["this"] }]) {
    assert.equal(faultsOf({ ...good, ...bad }, 5).length, 1, JSON.stringify(bad));
  }
});

/** Tables as a run without any fault leaves them. */
async function goodTables(t: Scope): Promise<{ pool: pg.Pool; messages: Messages }> {
  const { pool, schema } = await testDatabase(t);
  await migrate(pool, { schema });
  await pool.query("create table effect (message_id text, payload text, amount int)");
  await pool.query("create table account (id int primary key, balance bigint not null default 0)");
  await pool.query("insert into account (id) values (1)");
  const inbox = createInbox({ store: postgres(pool, { schema }), consumer: "accounting" });
  const apply: MessageHandler = async (message, { tx }) => {
    await tx.query("insert into effect values ($1, $2, 1)", [message.id, message.text()]);
    await tx.query("update account set balance = balance + 1");
  };
  const messages = createMessages(seededRandom(11));
  for (let i = 0; i < 100; i++) {
    const [first] = messages.next("plain") as [string];
    const { id } = JSON.parse(first) as { id: string };
    for (const payload of messages.sent.get(id)!.bodies) {
      await inbox.process({ producer: "payments", id, payload }, apply);
    }
  }
  return { pool, messages };
}

test("the check finds nothing in tables that are right, and every fault in tables that are not", async (t) => {
  const { pool, messages } = await goodTables(t);
  const right = await check(pool, messages);
  assert.deepEqual([right.lost, right.doubled, right.wrong], [0, 0, []]);
  assert.equal(right.applied, 100);
  assert.ok((right.quarantined["payload-conflict"] ?? 0) > 0, "some came with another payload");

  await pool.query("insert into effect select * from effect where message_id = 'm1'");
  const doubled = await check(pool, messages);
  assert.equal(doubled.doubled, 1);
  assert.deepEqual(doubled.wrong, ["the balances are not the sum of the effects"]);

  await pool.query("delete from effect where message_id in ('m1', 'm2')");
  const lost = await check(pool, messages);
  assert.equal(lost.lost, 2);
  assert.ok(lost.wrong.includes("m2: ledger and effect differ"));

  await pool.query("delete from quarantine");
  const { lost: withBodies } = await check(pool, messages);
  assert.equal(
    withBodies,
    2 + right.quarantined["payload-conflict"]!,
    "a second body that is gone is lost too",
  );
});

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import test from "node:test";
import { createInbox } from "../../src/inbox/create-inbox.ts";
import { consumer } from "../quarantine/support.ts";
import { caughtUp } from "../retention/cleanup-case.ts";
import { until } from "../support/in-time.ts";
import { objects, testDesk } from "./desk.ts";
import { finished, spawnInbox } from "./run-inbox.ts";

const why = ["--by", "ann", "--why", "brokers keep 7d"];

test("retention window, status, run and retire", async (t) => {
  const { pool, store, inbox } = await testDesk(t);
  const nothing = await inbox("retention", "status");
  assert.deepEqual([nothing.code, nothing.stdout], [0, ""]);
  assert.match(nothing.stderr, /No consumer has a window: nothing is ever forgotten/);
  assert.match((await inbox("retention", "run", "--once")).stderr, /No consumer has a window/);

  const own = createInbox({ store, consumer });
  for (const id of ["old", "young"])
    await own.process({ producer: "shop", id, payload: "x" }, async () => undefined);
  await pool.query("update message set processed_at = now() - interval '3 days' where message_id = 'old'");

  const tried = await inbox("retention", "window", "2d", "--consumer", consumer, "--dry-run", "--json");
  assert.deepEqual(objects(tried.stdout), [{ identities: 1 }]);
  assert.match(tried.stderr, /1 identity is older/);
  assert.equal(
    (await inbox("retention", "window", "2d", "--consumer", consumer)).code,
    2,
    "a reason is asked for",
  );
  const set = await inbox("retention", "window", "2d", "--consumer", consumer, ...why);
  assert.deepEqual([set.code, set.stderr], [0, "Identities of accounting are kept for 2d.\n"]);

  const unknown = await inbox("retention", "status");
  assert.equal(unknown.code, 3);
  assert.match(unknown.stdout, /accounting.*all others.*2d.*no source has reported progress/);
  const kept = await inbox("retention", "run", "--once");
  assert.equal(kept.code, 3);
  assert.match(
    kept.stderr,
    /0 identities forgotten[^]*Nothing of accounting is forgotten: no source has reported progress/,
  );

  await caughtUp(pool, { source: "kafka:payments" });
  await pool.query(
    "insert into source_clock (consumer, source, every_ms) values ('accounting', 'kafka:old\u0007topic', 15000)",
  );
  const waits = await inbox("retention", "status");
  assert.equal(waits.code, 3);
  assert.match(waits.stdout, /waits for kafka:old\\u0007topic/);
  assert.match(waits.stdout, /kafka:payments.*caught up/);
  assert.match(waits.stdout, /kafka:old\\u0007topic.*has not caught up/);
  const wrong = await inbox("retention", "retire", "kafka:nothing", "--consumer", consumer, ...why);
  assert.deepEqual([wrong.code, /inbox retention status/.test(wrong.stderr)], [1, true]);
  const retired = await inbox("retention", "retire", "kafka:old\u0007topic", "--consumer", consumer, ...why);
  assert.equal(retired.code, 0, retired.stderr);

  const run = await inbox("retention", "run", "--once", "--json");
  assert.equal(run.code, 0, run.stderr);
  assert.match(run.stderr, /1 identity forgotten in 1 batch, \d/);
  assert.equal(objects(run.stdout)[0]!["identities"], 1);
  const fine = await inbox("retention", "status");
  assert.equal(fine.code, 0);
  assert.match(fine.stdout, /forgets/);
  assert.match(fine.stderr, /The last sweep ended at .*: 1 identity forgotten/);
  const json = objects((await inbox("retention", "status", "--json")).stdout)[0] as {
    consumers: { consumer: string; windowMs: number; horizon: string }[];
  };
  assert.equal(json.consumers[0]!.windowMs, 172_800_000);
  assert.ok(Date.parse(json.consumers[0]!.horizon) > 0);

  const forever = await inbox("retention", "window", "forever", "--consumer", consumer, ...why);
  assert.match(forever.stderr, /are kept for ever/);
  const { rows } = await pool.query<{ kind: string }>("select kind from retention_decision order by id");
  assert.deepEqual(
    rows.map(({ kind }) => kind),
    ["window", "retire", "window"],
  );
});

test("retention refuses what is no duration, no percentage and no consumer", async (t) => {
  const { inbox } = await testDesk(t);
  for (const args of [
    ["window", "soon", "--consumer", "x"],
    ["window", "0s", "--consumer", "x"],
    ["window", "2d"],
    ["run", "--once", "--duty", "0"],
    ["run", "--once", "--every", "often"],
    ["retire", "--consumer", "x"],
  ]) {
    assert.equal((await inbox("retention", ...args)).code, 2, args.join(" "));
  }
});

test("retention run goes on until it is stopped, and ends with what it did", async (t) => {
  const { pool, store, env, schema } = await testDesk(t);
  const own = createInbox({ store, consumer, windowMs: 3_600_000 });
  await own.process({ producer: "shop", id: randomUUID(), payload: "x" }, async () => undefined);
  await caughtUp(pool);
  await store.cleanup.declareWindow(consumer, 3_600_000);
  await pool.query("update message set processed_at = now() - interval '1 day'");
  const command = ["retention", "run", "--every", "1s", "--health", "0", "--schema", schema];
  const running = spawnInbox(command, { env });
  t.after(() => running.kill("SIGKILL"));
  let said = "";
  const port = new Promise<string>((resolve, reject) => {
    running.once("exit", () => reject(new Error(`It ended: ${said}`)));
    running.stderr!.on("data", (chunk) => {
      said += String(chunk);
      const found = /Health at 127\.0\.0\.1 port (\d+)\./.exec(said)?.[1];
      if (found !== undefined) resolve(found);
    });
  });
  const result = finished(running);
  const answer = await fetch(`http://127.0.0.1:${await port}`);
  assert.equal(answer.status, 200);
  assert.match(((await answer.json()) as { status: string }).status, /^(ok|idle)$/);
  await until("the identity is forgotten", async () => {
    if (running.exitCode !== null) assert.fail(`it ended: ${(await result).stderr}`);
    return { holds: (await pool.query("select from message")).rows.length === 0 };
  });
  running.kill("SIGINT");
  const ended = await result;
  assert.equal(ended.code, 0, ended.stderr);
  assert.match(ended.stderr, /Forgetting every 1s\. Ctrl-C ends it\.[^]*1 identity forgotten/);
});

test("erase", async (t) => {
  const { store, inbox } = await testDesk(t);
  const own = createInbox({ store, consumer });
  await own.accept({ producer: "shop", id: "order-17", payload: "secret", headers: { a: "b" } });
  const args = ["erase", "order-17", "--consumer", consumer, "--producer", "shop"];
  const open = await inbox(...args, ...why);
  assert.deepEqual([open.code, /--discard/.test(open.stderr)], [1, true]);
  const tried = await inbox(...args, "--discard", "--dry-run");
  assert.match(tried.stderr, /would be erased: pending \(1 row\)/);
  assert.equal((await inbox(...args, "--discard")).code, 2);
  const erased = await inbox(...args, "--discard", "--json", ...why);
  assert.equal(erased.code, 0, erased.stderr);
  assert.equal(objects(erased.stdout)[0]!["pending"], 1);
  assert.match((await inbox(...args, ...why)).stderr, /No body of order-17 is kept/);
  assert.equal(
    (await inbox("erase", "nobody", "--consumer", consumer, "--producer", "shop", ...why)).code,
    1,
  );
  assert.equal((await inbox(...args, "--effect", "email", ...why)).code, 2);
});

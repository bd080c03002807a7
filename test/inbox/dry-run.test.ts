import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { z } from "zod";
import { PermanentError } from "../../src/errors.ts";
import { batch, quarantine, retryIn, type MessageHandler } from "../../src/inbox/handler.ts";
import { holdsSeveral, sqlOutline } from "../../src/inbox/sql-outline.ts";
import { controlsTransaction } from "../../src/inbox/transaction-control.ts";
import { sql } from "../../src/store/statement.ts";
import { message, recordEffect, testInbox, type TestInbox } from "./support.ts";

/** Nothing at all is left of a dry run: no effect, no claim, no attempt. */
async function assertUntouched({ pool, effects }: TestInbox): Promise<void> {
  assert.deepEqual(await effects(), {});
  const { rows } = await pool.query(
    "select (select count(*) from message)::int as messages, (select count(*) from attempt)::int as attempts",
  );
  assert.deepEqual(rows, [{ messages: 0, attempts: 0 }]);
}

test("tells what a handler of each form would do, and undoes it", async (t) => {
  const world = await testInbox(t);
  const insert = (id: string) => sql`insert into effect (message_id) values (${id})`;
  const own = await world.inbox.dryRun(message("m1"), recordEffect);
  assert.deepEqual(own, {
    answer: { kind: "done" },
    statements: [
      {
        text: "insert into effect (message_id) values ($1)",
        values: ["a text of 2"],
        command: "INSERT",
        rowCount: 1,
      },
    ],
    effects: [],
  });
  const returned = await world.inbox.dryRun(message("m1"), ({ id }) => [insert(id), insert(`${id}-2`)], {
    values: true,
  });
  assert.deepEqual(
    returned.statements.map(({ values, rowCount }) => [values, rowCount]),
    [
      [['"m1"'], 1],
      [['"m1-2"'], 1],
    ],
  );
  const all = await world.inbox.dryRun(
    message("m1"),
    batch((list) => list.map(({ id }) => insert(id))),
  );
  assert.deepEqual([all.answer.kind, all.statements.length], ["done", 1]);
  const result = await world.inbox.dryRun(message("m1"), () => ({ told: true }));
  assert.deepEqual(result.answer, { kind: "done", result: { told: true } });
  await assertUntouched(world);
});

test("tells retryIn, quarantine and every kind of failure as the lane would see it", async (t) => {
  const world = await testInbox(t);
  const answerOf = async (handler: Parameters<TestInbox["inbox"]["dryRun"]>[1]) =>
    (await world.inbox.dryRun(message("m1"), handler)).answer;
  assert.deepEqual(await answerOf(() => retryIn(500)), { kind: "retry-in", afterMs: 500 });
  assert.deepEqual(await answerOf(() => quarantine("no")), { kind: "quarantine", reason: "no" });
  const permanent = await answerOf(() => Promise.reject(new PermanentError("never")));
  assert.ok(permanent.kind === "failed" && permanent.class === "permanent");
  const rows = await answerOf(() => sql`update account set balance = 1 where id = 7`.expecting(1));
  assert.ok(rows.kind === "failed" && rows.code === "unexpected-row-count");
  const bad = await answerOf(() => [sql`insert into effect (message_id) values ('x')`, sql`select 1/0`]);
  assert.ok(bad.kind === "failed" && bad.code === "22012");
  const swallowed = await answerOf(async (_message, { tx }) => {
    await tx.query("select 1/0").catch(() => undefined);
  });
  assert.ok(swallowed.kind === "failed" && swallowed.code === "swallowed-error", JSON.stringify(swallowed));
  const late = await world
    .inboxWith({ handlerTimeoutMs: 50 })
    .dryRun(message("m1"), () => new Promise(() => undefined));
  assert.ok(late.answer.kind === "failed" && late.answer.code === "handler-timeout");
  await assertUntouched(world);
});

test("checks deferred constraints, which would fail at COMMIT only", async (t) => {
  const world = await testInbox(t);
  await world.pool.query(
    "create table line (effect text primary key, parent int references account (id) deferrable initially deferred)",
  );
  const { answer } = await world.inbox.dryRun(message("m1"), () => sql`insert into line values ('a', 77)`);
  assert.ok(answer.kind === "failed" && answer.code === "23503", JSON.stringify(answer));
  await assertUntouched(world);
});

test("refuses a handler that would end its transaction, however it is written, and commits nothing", async (t) => {
  const world = await testInbox(t);
  const insert = "insert into effect (message_id) values ('x')";
  const ways = [
    "commit",
    "/* a /* b */ */ -- c\n COMMIT",
    `${insert}; commit`,
    `${insert}; /* */ end;`,
    `${insert};;commit and chain`,
    `select 'it''s'; abort`,
    `select E'\\''; commit; --'`,
    `select $a$ $b$ ; $a$; commit`,
    "prepare transaction 'x'",
    "start transaction",
    "rollback",
    "do $$ begin commit; end $$",
  ];
  for (const way of ways) {
    const thrown = await world.inbox.dryRun(message("m1"), async (_message, { tx }) => {
      await tx.query(insert);
      await tx.query(way);
    });
    assert.equal(thrown.answer.kind, "failed", way);
    await world.inbox.dryRun(message("m1"), async (_message, { tx }) => {
      await tx.query(insert);
      await tx.query(way).catch(() => undefined);
      await tx.query(insert).catch(() => undefined);
    });
    await assertUntouched(world);
  }
});

test("savepoints, and texts that only look like control, are the handler's", async (t) => {
  const world = await testInbox(t);
  const { answer, statements } = await world.inbox.dryRun(message("m1"), async (_message, { tx }) => {
    await tx.query("savepoint a");
    await tx.query("select 1/0").catch(() => undefined);
    await tx.query("rollback to savepoint a");
    await tx.query("insert into effect (message_id) values ('a; commit') -- ; commit");
  });
  assert.deepEqual([answer.kind, statements.length], ["done", 4], JSON.stringify(answer));
  assert.match(statements[1]?.error ?? "", /22012/);
  await assertUntouched(world);
});

test("validates with the consumer's schema first, and runs an entry of the quarantine", async (t) => {
  const world = await testInbox(t);
  const strict = world.inboxWith({ payloadSchema: z.object({ amount: z.number() }) } as never);
  const invalid = await strict.dryRun(message("m1"), recordEffect);
  assert.ok(invalid.answer.kind === "failed" && invalid.answer.code === "invalid-payload");
  assert.deepEqual(invalid.statements, []);

  await world.inbox.process(message("m2", { key: "k" }), () => quarantine("broken"));
  await world.inbox.process({ producer: "payments", id: "", payload: "x" }, recordEffect);
  const { rows } = await world.pool.query<{ id: string }>("select id::text from quarantine order by id");
  const [entry, nameless] = await Promise.all(rows.map(({ id }) => world.store.quarantined.show(id)));
  const run = await world.inbox.dryRun(
    entry!,
    (own) => sql`insert into effect (message_id) values (${own.id + own.key!})`,
    {
      values: true,
    },
  );
  assert.deepEqual(run.statements[0]?.values, ['"m2k"']);
  await assert.rejects(world.inbox.dryRun(nameless!, recordEffect), { code: "decision-needs" });
  assert.deepEqual(await world.effects(), {});
});

test("gives its connection back whatever the handler does", async (t) => {
  const world = await testInbox(t, {}, { max: 2 });
  for (let i = 0; i < 6; i++) {
    await world.inbox.dryRun(message("m1"), (_message, { tx }) => {
      void tx.query("select pg_sleep(0.01)");
    });
  }
  assert.equal(world.pool.totalCount - world.pool.idleCount, 0);
});

test("the outline never takes hidden words for control, and never misses a statement behind a hidden part", () => {
  const hidden = fc
    .tuple(fc.constantFrom("'", '"', "$$", "$t$", "/*", "--"), fc.stringMatching(/^[a-z;: ]*$/))
    .map(([open, inner]) => {
      const close = open === "/*" ? "*/" : open === "--" ? "\n" : open;
      return `${open}${inner} ; commit ; ${close}`;
    });
  fc.assert(
    fc.property(fc.array(hidden, { maxLength: 4 }), (parts) => {
      const inside = `select ${parts.join(" , ")} `;
      assert.ok(!controlsTransaction(inside) && !holdsSeveral(sqlOutline(inside)), inside);
      const behind = `select ${parts.join(" , ")} ; commit`;
      assert.ok(controlsTransaction(behind) && holdsSeveral(sqlOutline(behind)), behind);
    }),
  );
});

test("shows the effects that a handler would ask for, and asks for none of them", async (t) => {
  const world = await testInbox(t);
  const handler: MessageHandler = async (given, context) => {
    context.outbox.send({ destination: "email", id: `mail/${given.id}`, key: "k", json: { to: given.id } });
    context.outbox.send({ destination: "sms", id: "s", payload: null });
    await recordEffect(given, context);
  };
  const { answer, effects } = await world.inbox.dryRun(message("m1"), handler);
  assert.deepEqual(answer, { kind: "done" });
  assert.deepEqual(effects, [
    { destination: "email", id: "mail/m1", key: "k", type: undefined, payload: "11 bytes" },
    { destination: "sms", id: "s", key: undefined, type: undefined, payload: "null" },
  ]);
  const open = await world.inbox.dryRun(message("m1"), handler, { values: true });
  assert.match(open.effects[0]?.payload ?? "", /"to.*m1/);
  const { rows } = await world.pool.query("select count(*)::int as n from outbox");
  assert.deepEqual(rows, [{ n: 0 }]);
  await assertUntouched(world);
});

test("an effect whose id was used with another payload would fail, as it would in earnest", async (t) => {
  const world = await testInbox(t);
  const handler: MessageHandler = ({ id }, { outbox }) =>
    void outbox.send({ destination: "email", id: "one", payload: id });
  assert.equal((await world.inbox.process(message("m1"), handler)).outcome, "applied");
  const { answer } = await world.inbox.dryRun(message("m2"), handler);
  assert.deepEqual([answer.kind, answer.kind === "failed" && answer.code], ["failed", "effect-conflict"]);
});

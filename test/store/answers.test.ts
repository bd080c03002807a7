import assert from "node:assert/strict";
import test from "node:test";
import postgresJs from "postgres";
import { createInbox, postgres, type Answer, type Inbox } from "../../src/index.ts";
import { createMessage } from "../../src/message/create-message.ts";
import { message, testInbox } from "../inbox/support.ts";
import { onTestEnd, type Scope } from "../support/cleanup.ts";
import { pgbouncerPath, startPgbouncer } from "../support/pgbouncer.ts";
import { testPool } from "../support/postgres.ts";
import { requireOrSkip } from "../support/require-or-skip.ts";

const answer: Answer = {
  request: 'POST /é?"',
  status: 201,
  headers: { "content-type": "text/plain", etag: '"1"' },
  body: Buffer.from([0, 255, 13, 10, 92]),
};

/** The same inbox through each driver. */
async function inboxes(t: Scope): Promise<readonly (readonly [string, Inbox])[]> {
  const { inboxWith, url, schema } = await testInbox(t);
  const client = postgresJs(url, { max: 4, onnotice: () => undefined });
  onTestEnd(t, () => client.end());
  return [
    ["pg", inboxWith({ consumer: "one" })],
    ["postgres", createInbox({ store: postgres(client, { schema }), consumer: "two" })],
  ];
}

test("an answer is committed with the effect or not at all, comes back byte for byte, and the first one stays", async (t) => {
  for (const [driver, inbox] of await inboxes(t)) {
    const own = createMessage(message("m-1"));
    const keep = inbox.answers.keep(own, answer);
    const failed = await inbox.process(own, async (_, { tx }) => {
      await tx.query(keep);
      throw new Error("rolled back");
    });
    assert.equal(failed.outcome, "failed");
    assert.equal(await inbox.answers.find(own), undefined);
    assert.equal((await inbox.process(own, () => keep)).outcome, "applied", driver);
    assert.deepEqual(await inbox.answers.find(own), answer, driver);
    const second = await inbox.answers.keepNow(own, { ...answer, status: 400 });
    assert.deepEqual(second, answer);
    const other = createMessage(message("m-2"));
    assert.equal((await inbox.answers.keepNow(other, { ...answer, body: new Uint8Array() })).body.length, 0);
  }
});

async function seesRunning(driver: string, inbox: Inbox): Promise<void> {
  const own = createMessage(message("m-1"));
  const mark = inbox.answers.markOf(own, "POST /a");
  const same = inbox.answers.markOf(createMessage(message("m-1")), "POST /a");
  const others = [
    inbox.answers.markOf(own, "POST /b"),
    inbox.answers.markOf(createMessage(message("m-1", { payload: "{}" })), "POST /a"),
  ];
  const unrelated = inbox.answers.markOf(createMessage(message("m-2")), "POST /a");
  assert.deepEqual(same, mark);
  const { outcome, error } = await inbox.process(own, async (_, { tx }) => {
    await tx.query(inbox.answers.hold(mark));
    assert.equal(await inbox.answers.isOtherRunning(same), false, driver);
    for (const other of others) assert.equal(await inbox.answers.isOtherRunning(other), true, driver);
    assert.equal(await inbox.answers.isOtherRunning(unrelated), false, driver);
  });
  assert.equal(outcome, "applied", error?.message);
  for (const other of others) assert.equal(await inbox.answers.isOtherRunning(other), false, driver);
}

test("a running request is seen by others as long as its transaction lasts: same, or another under its key", async (t) => {
  for (const [driver, inbox] of await inboxes(t)) await seesRunning(driver, inbox);
});

test("a running request is seen through a pooler in transaction mode", async (t) => {
  const reason = "pgbouncer is not installed (Debian: apt-get install pgbouncer)";
  if (!requireOrSkip(t, pgbouncerPath() !== undefined, reason)) return;
  const { url, schema } = await testInbox(t);
  const pool = await testPool(t, { url: await startPgbouncer(t, url) });
  await seesRunning("pgbouncer", createInbox({ store: postgres(pool, { schema }), consumer: "pooled" }));
});

import assert from "node:assert/strict";
import test from "node:test";
import { createOutbox } from "../../src/outbox/outbox.ts";
import { refused, sent } from "../../src/relay/relay.ts";
import type { Scope } from "../support/cleanup.ts";
import { inTransaction } from "../outbox/support.ts";
import { effect, startRelay, until } from "../relay/support.ts";
import { objects, testDesk, type TestDesk } from "./desk.ts";

const hostile = "id\u0007\u001b[2J\u202eend";

interface OutboxDesk extends TestDesk {
  readonly send: (...effects: readonly ReturnType<typeof effect>[]) => Promise<void>;
  readonly arrived: string[];
  readonly refusing: Map<string, string>;
}

/** A desk, and a relay whose destination refuses what is in `refusing`, with its text. */
async function outboxDesk(t: Scope): Promise<OutboxDesk> {
  const desk = await testDesk(t);
  const outbox = createOutbox({ store: desk.store, producer: "orders" });
  const [arrived, refusing] = [[] as string[], new Map<string, string>()];
  await startRelay(t, desk, {
    async there(given) {
      const why = refusing.get(given.id);
      if (why !== undefined) return refused(new Error(why));
      arrived.push(given.id);
      return sent("thanks");
    },
  });
  return {
    ...desk,
    ...{ arrived, refusing },
    send: (...effects) =>
      inTransaction(desk.pool, async (client) => void (await outbox.sendAll(client, effects))),
  };
}

const refusedNow = (desk: OutboxDesk, count: number) =>
  until(
    () => desk.store.outboxOperator.count({}),
    (open) => open === count,
  );

test("outbox groups, list and show: what was refused, by destination and error", async (t) => {
  const desk = await outboxDesk(t);
  const { inbox } = desk;
  for (const args of [["groups"], ["list"], ["waiting"], ["status"]]) {
    const { code, stdout } = await inbox("outbox", ...args);
    assert.deepEqual([code, stdout.includes("there")], [0, args[0] === "status"]);
  }
  for (const n of [1, 2, 3]) desk.refusing.set(`m${n}`, `no account ${n}`);
  desk.refusing.set("m4", "too large");
  const ids = ["m1", "m2", "m3", "m4"];
  await desk.send(...ids.map((id) => effect(id, { headers: { authorization: "Bearer x", trace: id } })));
  await desk.send(effect("m0", { delayMs: 3_600_000 }));
  await refusedNow(desk, 4);
  const groups = await inbox("outbox", "groups");
  assert.match(groups.stdout, / 3 +│ there +│ destination-refused +│ \d+\.\ds .*no account <n>/);
  assert.match(groups.stdout, / 1 +│ there +│ destination-refused .*too large/);
  const [group] = objects((await inbox("outbox", "groups", "--json")).stdout);
  const listed = await inbox("outbox", "list", "--json", "--group", String(group!["group"]));
  assert.deepEqual(
    objects(listed.stdout).map(({ effectId }) => effectId),
    ["m3", "m2", "m1"],
  );
  const page = await inbox("outbox", "list", "--limit", "1");
  const [, after = ""] = /--after (\d+)/.exec(page.stderr) ?? [];
  assert.equal(objects((await inbox("outbox", "list", "--json", "--after", after)).stdout).length, 3);
  const id = String(objects(listed.stdout)[2]!["id"]);
  const shown = await inbox("outbox", "show", id);
  assert.match(shown.stdout, /effect id +m1/);
  assert.match(shown.stdout, /header authorization +\*\*\*/);
  assert.match(shown.stdout, /payload +\{"id":"m1"\}/);
  assert.match(shown.stdout, /outcome +refused/);
  assert.match(shown.stdout, /attempt 1 .*rejected, destination-refused.*no account 1/);
  assert.equal((await inbox("outbox", "show", id, "--payload")).stdout, '{"id":"m1"}');
  const name = ["--destination", "there", "--producer", "orders", "--effect-id"];
  const [named] = objects((await inbox("outbox", "show", ...name, "m0", "--json")).stdout);
  assert.equal(named!["outcome"], "waiting");
  assert.equal((await inbox("outbox", "show", ...name, "never")).code, 1);
  assert.equal((await inbox("outbox", "show", "999")).code, 1);
  assert.equal((await inbox("outbox", "show")).code, 2);
  assert.equal((await inbox("outbox", "show", id, "--tenant", "x")).code, 2);
  const waiting = await inbox("outbox", "waiting", "--state", "scheduled");
  assert.match(waiting.stdout, /scheduled.*m0/);
  const status = await inbox("outbox", "status", "--json");
  const [there] = objects(status.stdout);
  assert.deepEqual([there!["waiting"], there!["scheduled"], there!["refused"]], [1, 1, 4]);
  assert.equal(status.code, 3);
});

test("outbox retry, repair and discard: one by one, and many when as many fit as were expected", async (t) => {
  const desk = await outboxDesk(t);
  const { inbox } = desk;
  const ids = ["m1", "m2", "m3", "m4", "m5"];
  for (const id of ids) desk.refusing.set(id, `no account ${id}`);
  await desk.send(...ids.map((id) => effect(id)));
  await refusedNow(desk, 5);
  const entryOf = async (effectId: string): Promise<string> =>
    String(
      objects(
        (await inbox("outbox", "list", "--status", "all", "--json", "--effect-id", effectId)).stdout,
      )[0]!["id"],
    );
  const why = ["--why", "it is there now", "--by", "ann"];
  assert.equal((await inbox("outbox", "retry", ...why)).code, 2);
  assert.equal((await inbox("outbox", "retry", "1", "--all", ...why)).code, 2);
  assert.equal((await inbox("outbox", "retry", "1")).code, 2);

  desk.refusing.delete("m1");
  const one = await inbox("outbox", "retry", await entryOf("m1"), "999", "--json", ...why);
  assert.equal(one.code, 1);
  assert.match(one.stderr, /given back to be sent[\s\S]*no refused effect "999"/);
  assert.equal((await inbox("outbox", "discard", await entryOf("m1"), ...why)).code, 1);
  const repair = ["outbox", "repair", await entryOf("m2"), "--payload", desk.file("fixed.json", "fixed")];
  const look = await inbox(...repair, "--dry-run");
  assert.match(look.stdout, /\+fixed/);
  assert.match(look.stderr, /same id, which is its idempotency key/);
  desk.refusing.delete("m2");
  const repaired = await inbox(...repair, ...why, "--json");
  assert.equal(objects(repaired.stdout)[0]!["kind"], "repair");
  assert.equal((await inbox("outbox", "discard", await entryOf("m3"), ...why)).code, 0);
  await until(() => desk.arrived.length === 2);
  assert.deepEqual([...desk.arrived].sort(), ["m1", "m2"]);

  const dry = await inbox("outbox", "retry", "--all", "--dry-run", "--json");
  assert.equal(objects(dry.stdout)[0]!["effects"], 2);
  assert.match(dry.stderr, /2 refused effects fit: --expected 2/);
  const wrong = await inbox("outbox", "retry", "--all", "--expected", "3", ...why);
  assert.equal(wrong.code, 1);
  assert.match(wrong.stderr, /nothing is decided/);
  assert.equal((await inbox("outbox", "retry", "--all", ...why)).code, 2);
  desk.refusing.clear();
  const typed = await desk.answering(["2"], "outbox", "retry", "--all", ...why);
  assert.equal(typed.code, 0);
  assert.match(typed.stderr, /retry of 2 entries, by ann: it is there now/);
  await until(() => desk.arrived.length === 4);
  const decisions = objects((await inbox("outbox", "decisions", "--json")).stdout);
  assert.deepEqual(
    decisions.map(({ kind, by, decided }) => [kind, by, decided]),
    [
      ["retry", "ann", 2],
      ["discard", "ann", 1],
      ["repair", "ann", 1],
      ["retry", "ann", 1],
    ],
  );
  assert.match((await inbox("outbox", "decisions")).stdout, /it is there now/);
  assert.equal((await inbox("outbox", "resume")).code, 0);
  assert.equal((await inbox("outbox", "resume", "1")).code, 1);
  assert.equal(
    objects((await inbox("outbox", "show", await entryOf("m4"), "--json")).stdout)[0]!["status"],
    "retried",
  );
});

test("a decision on many whose command died is carried on by resume", async (t) => {
  const desk = await outboxDesk(t);
  desk.refusing.set("m1", "no");
  await desk.send(effect("m1"));
  await refusedNow(desk, 1);
  const { decision } = await desk.store.outboxOperator.decideMany("discard", {}, { by: "ann", why: "x" }, 1);
  const status = await desk.inbox("outbox", "status");
  assert.match(status.stderr, new RegExp(`has 1 effect left. Run: inbox outbox resume ${decision!.id}`));
  const { code, stderr } = await desk.inbox("outbox", "resume", decision!.id);
  assert.equal(code, 0, stderr);
  assert.match(stderr, /discard of 1 entry/);
  assert.equal(await desk.store.outboxOperator.count({}), 0);
});

test("what producers, destinations and operators wrote cannot steer the terminal, wherever it is shown", async (t) => {
  const desk = await outboxDesk(t);
  const text = `${hostile}\r\nforged line`;
  desk.refusing.set(hostile, text);
  await desk.send(
    effect(hostile, { key: hostile, type: hostile, payload: text, headers: { [hostile]: text } }),
    effect(`${hostile}2`, { destination: hostile }),
  );
  await refusedNow(desk, 1);
  const why = ["--why", text, "--by", text];
  const name = ["--destination", "there", "--producer", "orders", "--effect-id"];
  for (const args of [
    ["status"],
    ["groups"],
    ["list"],
    ["waiting"],
    ["show", "1"],
    ["show", ...name, hostile],
    ["show", ...name, `${hostile}3`],
    ["show", hostile],
    ["retry", hostile, ...why],
    ["repair", "1", "--payload", desk.file("fixed", text.replace("end", "End")), ...why],
    ["discard", "1", ...why],
    ["show", "1"],
    ["decisions"],
  ]) {
    const { stdout, stderr } = await desk.inbox("outbox", ...args);
    assert.notEqual(stdout + stderr, "");
    assert.doesNotMatch(stdout + stderr, /[\u0007\u001b\r\u202e]/, args.join(" "));
    assert.doesNotMatch(stdout + stderr, /^forged line/m, args.join(" "));
  }
});

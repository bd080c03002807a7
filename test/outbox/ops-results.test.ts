import assert from "node:assert/strict";
import { test } from "node:test";
import { createInbox } from "../../src/inbox/create-inbox.ts";
import { effectIdOf, effectResults } from "../../src/outbox/results.ts";
import { refused, sent } from "../../src/relay/relay.ts";
import { message } from "../inbox/support.ts";
import { effect, startRelay, until } from "../relay/support.ts";
import { testOutbox } from "./support.ts";

test("a duplicate message is answered with what was sent for the first one", async (t) => {
  const place = await testOutbox(t);
  const { store } = place;
  await startRelay(t, place, { payments: (given) => sent({ receipt: `r-${given.text()}` }, 201) });
  const inbox = createInbox({ store, consumer: "orders" });
  const receive = async (id: string) => {
    const given = message(id);
    const { outcome } = await inbox.process(given, (order, { outbox }) => {
      outbox.send({ destination: "payments", payload: order.id });
    });
    const [answer] = await effectResults(store, [
      { destination: "payments", producer: "orders", id: effectIdOf("orders", given) },
    ]);
    return { outcome, answer: answer! };
  };
  const first = await receive("o1");
  assert.equal(first.outcome, "applied");
  const second = await until(
    () => receive("o1"),
    ({ answer }) => answer.outcome === "sent",
  );
  assert.equal(second.outcome, "duplicate");
  assert.deepEqual([second.answer.result, second.answer.status], ['{"receipt":"r-o1"}', 201]);
  assert.ok(second.answer.at instanceof Date);
});

test("results tell of each effect by its name, in the order asked, whatever became of it", async (t) => {
  const place = await testOutbox(t);
  const { store, outbox, commit } = place;
  await startRelay(t, place, {
    there: (given) => (given.id === "bad" ? refused(new Error("no")) : sent(given.id)),
  });
  await commit((client) =>
    outbox.sendAll(client, [
      effect("a"),
      effect("bad"),
      effect("later", { delayMs: 3_600_000 }),
      effect("gone", { lifetimeMs: 0 }),
      effect("a", { tenant: "t" }),
    ]),
  );
  await until(place.waiting, (waiting) => waiting.length === 2);
  const name = (id: string, tenant?: string) => ({ destination: "there", producer: "orders", id, tenant });
  const results = await until(
    () =>
      effectResults(store, [
        ...[name("a"), name("bad"), name("never"), name("later"), name("gone"), name("a", "t"), name("a")],
      ]),
    (found) => found[1]!.outcome === "refused",
  );
  assert.deepEqual(
    results.map(({ outcome, result }) => [outcome, result]),
    [
      ["sent", "a"],
      ["refused", undefined],
      ["unknown", undefined],
      ["waiting", undefined],
      ["expired", undefined],
      ["sent", "a"],
      ["sent", "a"],
    ],
  );
  assert.deepEqual(await effectResults(store, []), []);
  await assert.rejects(effectResults(store, [{ ...name("a"), id: 1 as never }]), { code: "invalid-option" });
});

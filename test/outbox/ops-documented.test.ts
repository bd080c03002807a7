import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { createInbox } from "../../src/inbox/create-inbox.ts";
import { createOutbox } from "../../src/outbox/outbox.ts";
import { effectIdOf, effectResults } from "../../src/outbox/results.ts";
import { refused, sent } from "../../src/relay/relay.ts";
import { testDesk } from "../cli/desk.ts";
import { runHere } from "../cli/in-process.ts";
import { message } from "../inbox/support.ts";
import { effect, startRelay, until } from "../relay/support.ts";
import { inTransaction, testOutbox } from "./support.ts";

const page = readFileSync(join(import.meta.dirname, "../../docs/outbox.md"), "utf8");
const commands = [...page.matchAll(/^```sh\n([\s\S]*?)^```/gm)].flatMap(([, text = ""]) =>
  text.split("\n").filter((line) => line !== ""),
);

test("every command of docs/outbox.md does what the page says", async (t) => {
  const desk = await testDesk(t);
  const arrived: string[] = [];
  const refusing = new Set(["a", "b", "c", "d"]);
  await startRelay(t, desk, {
    email(given) {
      if (refusing.has(given.id)) return refused(new Error(`no account ${given.id}`));
      arrived.push(`${given.id} ${given.text()}`);
      return sent();
    },
  });
  const outbox = createOutbox({ store: desk.store, producer: "orders" });
  // One after another, so that their entries have the numbers of the page.
  for (const [index, id] of ["a", "b", "c", "d"].entries()) {
    await inTransaction(desk.pool, (client) =>
      outbox.send(client, effect(id, { destination: "email", key: id, payload: `p-${id}` })),
    );
    await until(
      () => desk.store.outboxOperator.count({}),
      (count) => count === index + 1,
    );
  }
  await inTransaction(desk.pool, (client) =>
    outbox.send(client, effect("a2", { destination: "email", key: "a", payload: "p-a2" })),
  );
  await until(
    () => desk.store.outboxOperator.listWaiting({ state: "behind" }),
    (rows) => rows.length === 1,
  );
  const config = desk.file(
    "relay.mjs",
    "export const destinations = { other: () => undefined }; export const relay = { leaseMs: 30_000 };",
  );
  const fixed = desk.file("fixed.json", "");
  const outputs = new Map<string, string>();
  for (const line of commands) {
    if (line.includes(" retry 1")) refusing.clear();
    const [, command = "", target] = /^(.*?)(?: > (\S+))?$/.exec(line) ?? [];
    const words = [...command.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, word]) => quoted ?? word ?? "");
    const args = words
      .slice(1)
      .map((word) => (word === "relay.ts" ? config : word === "fixed.json" ? fixed : word));
    const { code, stdout, stderr } = await runHere([...args, "--schema", desk.schema], { env: desk.env });
    if (target !== undefined) writeFileSync(fixed, `${stdout} fixed`);
    assert.equal(code, line === "inbox outbox status" ? 3 : 0, `${line}\n${stdout}${stderr}`);
    outputs.set(line, stdout + stderr);
  }
  const output = (start: string): string =>
    [...outputs].find(([line]) => line.startsWith(start))?.[1] ?? assert.fail(`no command ${start}`);
  assert.match(output("inbox outbox status"), /email/);
  assert.match(output("inbox outbox show 1"), /error +no account a/);
  assert.match(output("inbox outbox waiting"), /behind.*a2/);
  assert.match(output("inbox outbox repair 2 --payload fixed.json --dry-run"), /\+p-b fixed/);
  assert.match(output("inbox outbox retry --destination email --expected"), /retry of 1 entry/);
  await until(() => arrived.length === 4);
  assert.deepEqual([...arrived].sort(), ["a p-a", "a2 p-a2", "b p-b fixed", "d p-d"]);
});

test("docs/outbox.md names every command, and every command has its help", async () => {
  const { stdout } = await runHere(["outbox", "--help"], { env: {} });
  const verbs = [...stdout.matchAll(/^ {2}([a-z-]+) /gm)]
    .map(([, name]) => name!)
    .filter((name) => name !== "help");
  assert.equal(verbs.length, 11);
  for (const verb of verbs) {
    assert.ok(
      commands.some((line) => line.startsWith(`inbox outbox ${verb}`)),
      verb,
    );
    const help = await runHere(["outbox", verb, "--help"], { env: {} });
    assert.equal(help.code, 0);
    assert.match(help.stdout, /--schema <name>[\s\S]*--json/);
  }
});

test("the example of docs/outbox.md answers a duplicate with what was sent", async (t) => {
  const place = await testOutbox(t);
  const { store } = place;
  await startRelay(t, place, { payments: () => sent("paid") });
  const inbox = createInbox({ store, consumer: "orders" });
  const order = message("o1");
  const replies: (string | undefined)[] = [];
  const reply = (text: string | undefined): unknown => replies.push(text);
  const receive = async (): Promise<void> => {
    const { outcome } = await inbox.process(order, (given, { outbox }) => {
      outbox.send({ destination: "payments", payload: given.bytes });
    });
    if (outcome === "duplicate") {
      const id = effectIdOf("orders", order);
      const [payment] = await effectResults(store, [{ destination: "payments", producer: "orders", id }]);
      reply(payment?.outcome === "sent" ? payment.result : "not paid yet");
    }
  };
  await receive();
  assert.deepEqual(replies, []);
  await until(async () => {
    await receive();
    return replies.at(-1) === "paid";
  });
});

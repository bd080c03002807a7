import assert from "node:assert/strict";
import { test } from "node:test";
import { killsIn, type PlayResult } from "../../examples/two-services/play/result.ts";
import { service } from "../services/service.ts";
import { commandsOf, runDocumented, type Ended } from "../support/documented-command.ts";

const command = commandsOf("docs/end-to-end.md").find((text) => text.includes("chain"))!;
const kills = 15;

function holds({ code, stdout, stderr }: Ended): void {
  assert.equal(code, 0, `${stderr}\n${stdout}`);
  const result = JSON.parse(stdout) as PlayResult;
  assert.deepEqual(result.violations, []);
  assert.deepEqual([result.entries, result.receipts], [result.orders, result.orders]);
  assert.equal(killsIn(result.kills), kills);
  const places = Object.keys(result.kills);
  assert.ok(
    places.some((where) => where.startsWith("PostgreSQL")),
    String(places),
  );
  assert.ok(places.filter((where) => !where.endsWith("any time")).length >= 1, String(places));
}

test("everything is killed at points of its work, from database to database: sent under one id, applied once, in order", async () => {
  holds(await runDocumented(command, ["--kills", String(kills), "--seed", "7", "--json"]));
});

test("everything is killed at points of its work, through RabbitMQ: sent under one id, applied once, in order", async (t) => {
  const broker = await service(t, "rabbitmq");
  if (broker === undefined) return;
  const more = ["--broker", "rabbitmq", "--kills", String(kills), "--seed", "8", "--json"];
  holds(await runDocumented(command, more, { AMQP_URL: broker.url }));
});

test("refuses options it does not know, and says how it is used", async () => {
  const wrong = [
    ["--kills", "none"],
    ["--kill", "3"],
    ["--kills", "0"],
    ["--broker", "none of them"],
  ];
  for (const { code, stdout, stderr } of await Promise.all(
    wrong.map((args) => runDocumented(command, args)),
  )) {
    assert.equal(code, 2);
    assert.equal(stdout, "");
    assert.match(stderr, /Usage: npm run chain/);
  }
});

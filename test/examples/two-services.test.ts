import assert from "node:assert/strict";
import { test } from "node:test";
import { compare } from "../../examples/two-services/play/compare.ts";
import type { Books } from "../../examples/two-services/play/books.ts";
import { killsIn, type PlayResult } from "../../examples/two-services/play/result.ts";
import type { Order, OrderPlaced } from "../../examples/two-services/order-placed.ts";
import { service } from "../services/service.ts";
import { commandsOf, runDocumented, type Ended } from "../support/documented-command.ts";

const [, fromDatabaseToDatabase = "", throughRabbitmq = "", atTheWorstMoments = ""] =
  commandsOf("docs/end-to-end.md");

test("the commands of docs/end-to-end.md are those that the tests run", () => {
  assert.deepEqual(commandsOf("docs/end-to-end.md"), [
    "npm ci",
    "npm run example -- --broker none --seconds 20",
    "AMQP_URL=amqp://guest:guest@127.0.0.1:5672 npm run example",
    // By test/chain.
    "npm run chain -- --broker none --kills 500 --seed 1",
  ]);
  assert.ok(atTheWorstMoments.includes("chain"));
});

function agree({ code, stdout, stderr }: Ended): void {
  assert.equal(code, 0, `${stderr}\n${stdout}`);
  const result = JSON.parse(stdout) as PlayResult;
  assert.deepEqual(result.violations, []);
  assert.ok(result.orders >= 12, `${result.orders} orders`);
  assert.deepEqual([result.entries, result.receipts], [result.orders, result.orders]);
  assert.ok(result.requests >= result.receipts);
  assert.ok(killsIn(result.kills) >= 3, JSON.stringify(result.kills));
}

test("orders, ledger and receipts agree after everything was killed, from database to database", async () => {
  agree(await runDocumented(fromDatabaseToDatabase, ["--seconds", "5", "--seed", "5", "--json"]));
});

test("orders, ledger and receipts agree after everything was killed, through RabbitMQ", async (t) => {
  const broker = await service(t, "rabbitmq");
  if (broker === undefined) return;
  const env = { AMQP_URL: broker.url };
  agree(await runDocumented(throughRabbitmq, ["--seconds", "12", "--seed", "6", "--json"], env));
});

test("without a broker it says what it misses, and how to do without; wrong options are refused", async () => {
  const { code, stdout, stderr } = await runDocumented(throughRabbitmq, ["--seconds", "1"], {
    AMQP_URL: "amqp://127.0.0.1:1",
  });
  assert.equal(code, 1);
  assert.equal(stdout, "");
  assert.match(stderr, /There is no RabbitMQ at 127\.0\.0\.1:1 \(/);
  assert.match(stderr, /npm run services -- up rabbitmq/);
  assert.match(stderr, /--broker none/);
  const wrong = [
    ["--seconds", "0"],
    ["--broker", "kafka"],
    ["--second", "3"],
  ];
  for (const refused of await Promise.all(wrong.map((args) => runDocumented(throughRabbitmq, args)))) {
    assert.equal(refused.code, 2);
    assert.match(refused.stderr, /Usage: npm run example/);
  }
});

const orders: readonly OrderPlaced[] = [
  { order: "c1-1", customer: "c1", number: 1, cents: 5 },
  { order: "c1-2", customer: "c1", number: 2, cents: 7 },
  { order: "c2-1", customer: "c2", number: 1, cents: 9 },
];
const [first, second, other] = orders as [OrderPlaced, OrderPlaced, OrderPlaced];
const placed = new Map<string, Order>(
  orders.map(({ order, customer, cents }) => [order, { id: order, customer, cents }]),
);
const request = (receipt: OrderPlaced) => ({ key: `"receipt/${receipt.order}"`, receipt });
const attempts = (effect: string, outcomes: readonly string[] = ["sent"]) =>
  new Map(orders.map(({ order }) => [`${effect}/${order}`, outcomes]));
const good: Books = {
  orders,
  entries: [first, other, second],
  balances: new Map([
    ["c1", 12],
    ["c2", 9],
  ]),
  // The second receipt's relay was killed before it knew.
  requests: [request(first), request(second), request(second), request(other)],
  attempts: { orders: attempts("placed"), ledger: attempts("receipt", ["ambiguous", "sent"]) },
  left: { "effects of orders": 0 },
};

test("books that agree have no violation, and every kind of fault is found", () => {
  assert.deepEqual(compare(placed, good), []);
  const faults: readonly [Partial<Books>, ...RegExp[]][] = [
    [{ entries: [first, other] }, /order c1-2: no ledger entry/],
    [{ entries: [first, second, second, other] }, /order c1-2: 2 ledger entries/],
    [{ entries: [second, first, other] }, /ledger: order 2 of c1 came after 0/, /order 1 of c1 came after 2/],
    [{ entries: [first, { ...second, cents: 8 }, other] }, /order c1-2: a ledger entry that is not/],
    [{ balances: new Map([["c1", 12]]) }, /balance of c2: undefined/],
    [{ requests: [request(first), request(other)] }, /order c1-2: no receipt/],
    [
      { requests: [request(second), request(first), request(other)] },
      /receipts: order 2 of c1 came after 0/,
      /./,
    ],
    [
      { requests: [request(first), request(second), { key: '"other"', receipt: second }, request(other)] },
      /order c1-2: a receipt under the key "other"/,
    ],
    [
      {
        attempts: { ...good.attempts, orders: new Map([...attempts("placed"), ["placed/c1-1", ["failed"]]]) },
      },
      /order c1-1: the outbox of orders recorded 0 times/,
    ],
    [{ left: { "messages of ledger": 2 } }, /2 messages of ledger left/],
  ];
  for (const [fault, ...says] of faults) {
    const found = compare(placed, { ...good, ...fault });
    assert.equal(found.length, says.length, found.join("\n"));
    for (const [i, text] of says.entries()) assert.match(found[i]!, text);
  }
  const lost = compare(new Map([...placed, ["c2-2", { id: "c2-2", customer: "c2", cents: 1 }]]), good);
  assert.deepEqual(lost, ["order c2-2: its customer was told it is placed, and it is not"]);
  const invented = compare(new Map([...placed].slice(1)), good);
  assert.deepEqual(invented, ["order c1-1: not what its customer asked for"]);
});

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { CreateQueueCommand } from "@aws-sdk/client-sqs";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { connect as connectAmqp } from "amqplib";
import { Kafka, logLevel } from "kafkajs";
import { runInbox } from "../cli/run-inbox.ts";
import { hoursAgo, ledgerCase } from "../reconcile/ledger-case.ts";
import { service } from "../services/service.ts";
import { onTestEnd } from "../support/cleanup.ts";
import { requireOrSkip } from "../support/require-or-skip.ts";
import { sqsServer } from "./sqs-server.ts";

interface Printed {
  readonly windowMs: number | null;
  readonly forEver: boolean;
  readonly decides: { readonly name: string; readonly broker?: string };
  readonly scenarios: readonly {
    readonly name: string;
    readonly broker?: string;
    readonly reachMs?: number | null;
  }[];
  readonly measured?: { readonly rows: number; readonly bytesPerRow: number; readonly rowsPerDay: number };
  readonly cost?: { readonly rows: number; readonly bytes: number };
  readonly faults: readonly string[];
}

const day = 86_400_000;

test("inbox retention plan asks SQS, measures the ledger, and tells what decides and what it costs", async (t) => {
  const { url, schema, fill, pool } = await ledgerCase(t);
  const rows = 20_000;
  await fill(Array.from({ length: rows }, () => ({ id: randomUUID(), at: hoursAgo(48) })));
  await pool.query("vacuum analyze message");
  const { client, endpoint } = await sqsServer(t);
  const { QueueUrl } = await client.send(
    new CreateQueueCommand({
      QueueName: "orders",
      Attributes: { MessageRetentionPeriod: String(4 * 86_400) },
    }),
  );
  const env = {
    ...{ DATABASE_URL: url, AWS_ENDPOINT_URL_SQS: endpoint, AWS_REGION: "us-east-1" },
    ...{ AWS_ACCESS_KEY_ID: "test", AWS_SECRET_ACCESS_KEY: "test" },
    // The server's queues have URLs under localhost, which not every resolver knows.
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(
      `import { interceptLocalhostDns } from ${JSON.stringify(import.meta.resolve("fauxqs"))}; interceptLocalhostDns();`,
    )}`,
  };
  const args = ["retention", "plan", "--sqs", QueueUrl!, "--partner-retry", "30d", "--schema", schema];
  const people = await runInbox(args, { env });
  assert.equal(people.code, 0, people.stderr);
  assert.match(people.stdout, /\* │ partner retry/);
  assert.match(people.stdout, /sqs:orders: an acknowledgement is lost/);
  assert.match(people.stdout, /Keep identities for 35d: partner retry decides, and a margin of 1d\./);
  assert.match(people.stdout, /Not declared: producer retry/);
  assert.match(people.stdout, /a day at \d+ bytes each, measured over 2\.0 days/);

  const { stdout } = await runInbox([...args, "--json", "--longest-outage", "1d"], { env });
  const plan = JSON.parse(stdout) as Printed;
  assert.deepEqual([plan.decides.name, plan.forEver], ["partner retry", false]);
  assert.ok(
    plan.windowMs! >= 32 * day && plan.windowMs! < 32 * day + 60_000,
    "a day down, thirty of retries, a day of margin",
  );
  assert.equal(plan.measured!.rows, rows);
  assert.ok(Math.abs(plan.measured!.rowsPerDay - rows / 2) < rows / 20);
  const size = await pool.query<{ bytes: number }>(
    "select (pg_table_size('message') + pg_indexes_size('message') + pg_total_relation_size('answer'))::float8 as bytes",
  );
  assert.ok(Math.abs(plan.measured!.bytesPerRow - size.rows[0]!.bytes / rows) < 1);
  assert.ok(
    Math.abs(
      plan.cost!.bytes / (plan.measured!.bytesPerRow * plan.measured!.rowsPerDay * (plan.windowMs! / day)) -
        1,
    ) < 1e-9,
  );
});

test("a window that is too short is named by the scenario that reaches beyond it, and ends with 3", async () => {
  const args = [
    "retention",
    "plan",
    "--no-measure",
    "--log-retention",
    "7d",
    "--longest-outage",
    "1d",
    "--margin",
    "0s",
  ];
  const short = await runInbox([...args, "--window", "3d"]);
  assert.equal(short.code, 3, short.stderr);
  assert.match(short.stdout, /! rewind of log reaches back 7d/);
  const enough = await runInbox([...args, "--window", "7d"]);
  assert.equal(enough.code, 0);
  assert.match(enough.stdout, /A window of 7d is long enough/);
});

test("a stream without end is for ever, says so in JSON, and ends with 3", async (t) => {
  const facts = await service(t, "nats");
  if (facts === undefined) return;
  const connection = await connect({ servers: facts.url });
  onTestEnd(t, () => connection.close());
  const manager = await jetstreamManager(connection);
  const stream = `plan-${randomUUID()}`;
  await manager.streams.add({ name: stream, subjects: [`${stream}.>`] });
  onTestEnd(t, async () => void (await manager.streams.delete(stream)));
  const args = ["retention", "plan", "--no-measure", "--jetstream", stream, "--json"];
  const { code, stdout, stderr } = await runInbox(args, { env: { NATS_URL: facts.url } });
  assert.equal(code, 3, stderr);
  const plan = JSON.parse(stdout) as Printed;
  assert.deepEqual([plan.forEver, plan.windowMs, plan.decides.broker], [true, null, `nats:${stream}`]);
  const limited = await runInbox([...args, "--max-rewind", "10d", "--longest-outage", "1h"], {
    env: { NATS_URL: facts.url },
  });
  assert.equal(limited.code, 0);
  assert.equal((JSON.parse(limited.stdout) as Printed).windowMs, 11 * day);
});

test("a queue of RabbitMQ and a topic of Kafka are asked together, and their passwords are not shown", async (t) => {
  const [rabbitmq, kafka] = [await service(t, "rabbitmq"), await service(t, "kafka")];
  if (rabbitmq === undefined || kafka === undefined) return;
  const there = rabbitmq.management !== undefined && kafka.real;
  if (!requireOrSkip(t, there, "no management plugin, or no real Kafka")) return;
  const name = `plan-${randomUUID()}`;
  const connection = await connectAmqp(rabbitmq.url);
  onTestEnd(t, () => connection.close());
  const channel = await connection.createChannel();
  await channel.assertQueue(name, { arguments: { "x-message-ttl": 3 * day } });
  onTestEnd(t, async () => void (await channel.deleteQueue(name)));
  const admin = new Kafka({ brokers: [...kafka.brokers], logLevel: logLevel.NOTHING }).admin();
  await admin.connect();
  onTestEnd(t, () => admin.disconnect());
  const configEntries = Object.entries({ "retention.ms": String(5 * day), "segment.ms": String(day) });
  await admin.createTopics({
    waitForLeaders: true,
    topics: [{ topic: name, configEntries: configEntries.map(([key, value]) => ({ name: key, value })) }],
  });
  onTestEnd(t, () => admin.deleteTopics({ topics: [name] }));
  const management = new URL(rabbitmq.management!);
  const { username, password } = new URL(rabbitmq.url);
  management.username = username;
  management.password = password;
  const env = { RABBITMQ_MANAGEMENT_URL: management.href, KAFKA_BROKERS: kafka.brokers.join(",") };
  const args = ["retention", "plan", "--no-measure", "--longest-outage", "1h", "--json"];
  const asked = await runInbox([...args, "--rabbitmq", name, "--kafka", name], { env });
  assert.equal(asked.code, 0, asked.stderr);
  const { scenarios, windowMs } = JSON.parse(asked.stdout) as Printed;
  const reach = (scenario: string, broker: string) =>
    scenarios.find((one) => one.name === scenario && one.broker === broker)?.reachMs;
  assert.equal(reach("redelivery", `rabbitmq:${name}`), 3_600_000 + 1_800_000);
  assert.equal(reach("rewind", `kafka:${name}`), 6 * day);
  assert.equal(windowMs, 7 * day);
  const missing = await runInbox([...args, "--rabbitmq", `${name}-no`], { env });
  assert.equal(missing.code, 1);
  assert.match(missing.stderr, /answered 404/);
  assert.ok(!missing.stderr.includes(`:${password}@`));
});

test("a ledger with too little in it is not measured, and that is said", async (t) => {
  const { url, schema } = await ledgerCase(t);
  const args = ["retention", "plan", "--partner-retry", "7d", "--schema", schema];
  const { code, stdout, stderr } = await runInbox(args, { env: { DATABASE_URL: url } });
  assert.equal(code, 0, stderr);
  assert.match(stderr, /too little to measure/);
  assert.doesNotMatch(stdout, /bytes each/);
});

for (const [what, args, env] of [
  ["with nothing to plan for", [], {}],
  ["with a duration without unit", ["--partner-retry", "30"], {}],
  ["with a topic and no brokers", ["--kafka", "t"], {}],
  ["with a queue that is no URL", ["--sqs", "orders"], {}],
  [
    "with a management address that is none",
    ["--rabbitmq", "q"],
    { RABBITMQ_MANAGEMENT_URL: "user:secret@host" },
  ],
] as const) {
  test(`wrong usage ends with 2: inbox retention plan ${what}`, async () => {
    const { code, stderr } = await runInbox(["retention", "plan", "--no-measure", ...args], { env });
    assert.equal(code, 2, stderr);
    assert.ok(!stderr.includes("secret"));
  });
}

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { type TestContext } from "node:test";
import { projection } from "../../src/replay/policy.ts";
import { runHere } from "../cli/in-process.ts";
import type { RunResult } from "../cli/run-inbox.ts";
import { testTopic } from "../sources/kafka/support.ts";
import { onTestEnd } from "../support/cleanup.ts";
import { lineOf, messageOf, payments, record, testReplay, type TestReplay } from "./support.ts";

const handler = `
export const options = { consumer: "accounting", handlerVersion: "9" };
export default async ({ id }, { tx }) => {
  await tx.query("insert into done values ('handler', $1)", [id]);
};
`;

interface Case extends TestReplay {
  readonly inboxCommand: (...args: readonly string[]) => Promise<RunResult>;
  readonly answering: (answers: readonly string[], ...args: readonly string[]) => Promise<RunResult>;
  readonly handler: string;
  readonly file: (name: string, text: string) => string;
}

async function testCase(t: TestContext, more: Readonly<Record<string, string>> = {}): Promise<Case> {
  const at = await testReplay(t);
  const directory = mkdtempSync(join(tmpdir(), "inbox-replay-command-"));
  onTestEnd(t, () => rmSync(directory, { recursive: true, force: true }));
  const url = new URL(at.url);
  url.searchParams.set("options", `-c search_path=${at.schema}`);
  const env = { DATABASE_URL: url.href, ...more };
  const file = (name: string, text: string): string => {
    writeFileSync(join(directory, name), text);
    return join(directory, name);
  };
  const withSchema = (args: readonly string[]): string[] => ["replay", ...args, "--schema", at.schema];
  return {
    ...at,
    file,
    handler: file("handler.mjs", handler),
    inboxCommand: (...args) => runHere(withSchema(args), { env }),
    answering: (answers, ...args) => runHere(withSchema(args), { env, answers }),
  };
}

const linesOf = (count: number): string =>
  payments(count)
    .map((one) => `${lineOf(one)}\n`)
    .join("");

const named = ["--id-path", "id", "--producer", "shop", "--key-path", "account"];
const why = ["--by", "ann", "--why", "the sums were wrong"];

test("replay run is refused without a policy, without a source, and without who confirms", async (t) => {
  const { inboxCommand, handler: module, file, column } = await testCase(t);
  const source = ["--source", file("all.ndjson", linesOf(3)), ...named];
  const rebuild = ["--of", "accounting", "--rebuild-as", "view"];
  for (const [args, text] of [
    [[module, "--of", "accounting", ...source, "--at-most", "9", ...why], /needs a policy/],
    [[module, ...rebuild, "--at-most", "9", ...why], /--source, --stored or --kafka/],
    [[module, ...rebuild, ...source, ...why], /Confirm with --at-most 3/],
    [
      [module, ...rebuild, ...source, "--at-most", "2", ...why],
      /3 messages would run.*more than --at-most 2/,
    ],
    [[module, ...rebuild, ...source, "--at-most", "3", "--by", "ann"], /kept with its reason/],
    [[module, "--rebuild-as", "view", ...source, "--at-most", "9", ...why], /--of must name/],
    [[module, ...rebuild, "--compensate", "m", ...source, ...why], /one policy/],
    [[module, ...rebuild, "--effects", "send", ...source, ...why], /goes with --compensate/],
    [[module, ...rebuild, "--source", "-", ...named, ...why], /more than once/],
    [[module, "--projection", "balances", ...source, ...why], /balances@3/],
  ] as const) {
    const { code, stderr } = await inboxCommand("run", ...args);
    assert.equal(code, 2, `${args.join(" ")}\n${stderr}`);
    assert.match(stderr, text);
  }
  const same = await inboxCommand(
    "run",
    module,
    "--of",
    "a",
    "--rebuild-as",
    "a",
    ...source,
    "--at-most",
    "9",
    ...why,
  );
  assert.equal(same.code, 1);
  assert.match(same.stderr, /applies none of them twice/);
  assert.deepEqual(await column("select count(*)::int from done"), [0]);
  assert.deepEqual(await column("select count(*)::int from replay"), [0]);
});

test("plan and run say the same, and list says who did it", async (t) => {
  const { inbox, inboxCommand, answering, handler: module, file, column } = await testCase(t);
  await inbox.processBatch(payments(12).map(messageOf), record("original") as never);
  const source = ["--source", file("all.ndjson", linesOf(20)), ...named];
  const each = await inboxCommand("plan", "--of", "accounting", ...source);
  assert.equal(each.code, 0, each.stderr);
  assert.match(each.stdout, /rebuild +│ +20 /);
  assert.match(each.stdout, /projection +│ +20 /);
  assert.match(each.stdout, /compensate +│ +12 +│ +8 unknown/);

  const fix = ["--of", "accounting", "--compensate", "fix-1"];
  const plan = await inboxCommand("plan", ...fix, ...source);
  assert.match(plan.stdout, /would run +12/);
  assert.match(plan.stdout, /original applied +12 by version 1/);
  assert.match(plan.stdout, /original never took +8/);
  const run = await answering(["12"], "run", module, ...fix, ...source, ...why, "--json");
  assert.equal(run.code, 0, run.stderr);
  const report = JSON.parse(run.stdout) as { consumer: string; counts: { applied: number } };
  assert.deepEqual([report.consumer, report.counts.applied], ["accounting#fix-1", 12]);
  assert.match(run.stderr, /Done: 12 messages, 12 applied, left out: 8 unknown\./);
  assert.deepEqual(
    await column("select distinct handler_version from message where consumer = 'accounting#fix-1'"),
    ["9"],
  );
  const again = JSON.parse((await inboxCommand("plan", ...fix, ...source, "--json")).stdout) as {
    wouldRun: number;
    applied: object;
  };
  assert.deepEqual([again.wouldRun, again.applied], [0, { 9: 12 }]);
  const wrong = await answering(
    ["11"],
    "run",
    module,
    "--of",
    "accounting",
    "--rebuild-as",
    "v",
    ...source,
    ...why,
  );
  assert.equal(wrong.code, 2);
  assert.match(wrong.stderr, /Nothing was run/);
  const list = await inboxCommand("list");
  assert.match(list.stdout, /compensate.*accounting#fix-1.*done.*12.*ann/);
  const row = JSON.parse(
    (await inboxCommand("list", "--json", "--consumer", "accounting#fix-1")).stdout,
  ) as object;
  assert.deepEqual(
    [(row as { by: string }).by, (row as { why: string }).why],
    ["ann", "the sums were wrong"],
  );
});

test("a projection is replayed from stored bodies and retires the version before", async (t) => {
  const { inboxWith, inboxCommand, handler: module, column } = await testCase(t);
  const all = payments(15).map(messageOf);
  await inboxWith({ consumer: "archive" }).accept(all);
  await inboxWith({ consumer: projection("balances", 2) }).processBatch(all, record("v2") as never);
  const retire = ["retire", "balances@2", "--successor", "balances@3"];
  const early = await inboxCommand(...retire, "--dry-run");
  assert.equal(early.code, 3, early.stderr);
  assert.match(early.stdout, /missing +15/);
  assert.equal((await inboxCommand(...retire, ...why)).code, 1);
  const run = await inboxCommand(
    ...["run", module, "--projection", "balances@3", "--stored", "archive", "--at-most", "15", ...why],
  );
  assert.equal(run.code, 0, run.stderr);
  assert.deepEqual(await column("select count(*)::int from done where consumer = 'handler'"), [15]);
  const done = await inboxCommand(...retire, ...why);
  assert.equal(done.code, 0, done.stderr);
  assert.match(done.stderr, /balances@2 is retired: balances@3 has taken over/);
  const twice = await inboxCommand(...retire, ...why);
  assert.equal(twice.code, 1);
  assert.match(twice.stderr, /retired already/);
});

test("a topic is replayed by the command, and planned before", async (t) => {
  const topic = await testTopic(t);
  if (topic === undefined) return;
  await topic.publish(["a", "b", "c"].map((id) => ({ id })));
  const {
    inboxCommand,
    handler: module,
    column,
  } = await testCase(t, { KAFKA_BROKERS: topic.brokers.join(",") });
  const rebuild = [
    "--of",
    "accounting",
    "--rebuild-as",
    "view",
    "--kafka",
    topic.topic,
    "--id-header",
    "message-id",
  ];
  const group = ["--kafka-group", topic.groupId];
  const nobody = await inboxCommand("plan", ...rebuild);
  assert.equal(nobody.code, 2);
  assert.match(nobody.stderr, /--kafka-group must name/);
  const plan = await inboxCommand("plan", ...rebuild, ...group, "--from", "2001-01-01");
  assert.equal(plan.code, 0, plan.stderr);
  assert.match(plan.stdout, /would run +3/);
  const run = await inboxCommand("run", module, ...rebuild, ...group, "--at-most", "3", ...why);
  assert.equal(run.code, 0, run.stderr);
  assert.deepEqual(await column("select message_id from done order by 1"), ["a", "b", "c"]);
});

test("every command of replay has its help", async () => {
  for (const verb of ["plan", "run", "list", "retire"]) {
    const { code, stdout } = await runHere(["replay", verb, "--help"], { env: {} });
    assert.equal(code, 0);
    assert.match(stdout, /--json/);
    assert.match(stdout, /--schema <name>/);
  }
});

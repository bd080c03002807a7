import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { makePayments } from "../../examples/demo/payments.ts";
import { seededRandom } from "../../examples/demo/random.ts";
import { faultsOf, sum, type DemoResult } from "../../examples/demo/result.ts";

const tsx = fileURLToPath(import.meta.resolve("tsx"));
const main = join(import.meta.dirname, "../../examples/demo/main.ts");

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

async function run(
  args: readonly string[],
  onStderr: (text: string, pid: number) => void = () => undefined,
): Promise<Ended> {
  const child = spawn(process.execPath, ["--import", tsx, main, ...args], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let stdout = "";
  let stderr = "";
  child.stdout.on("data", (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => {
    stderr += chunk.toString();
    onStderr(stderr, child.pid!);
  });
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  return { code, stdout, stderr };
}

test("the demo's inbox is exact though its consumers are killed, and the other side is not", async () => {
  const { code, stdout, stderr } = await run(["--messages", "600", "--seed", "4", "--json"]);
  assert.equal(code, 0, `${stderr}\n${stdout}`);
  const result = JSON.parse(stdout) as DemoResult;
  assert.deepEqual(result.faults, []);
  assert.equal(result.distinct, 600);
  assert.equal(result.copies, 120);
  assert.equal(result.withInbox.totalCents, result.expectedCents);
  assert.equal(result.withInbox.conflicts, 12);
  assert.ok(result.withInbox.duplicates >= 100, `${result.withInbox.duplicates} duplicates`);
  assert.ok(result.withInbox.kills >= 1 && result.withoutInbox.kills >= 1);
  assert.ok(result.withoutInbox.differenceCents >= result.copiesCents);
  assert.equal(stderr.includes("\x1b"), false, "no control codes where there is no terminal");
});

test("the demo prints a table without colours to a file, and stops tidily when it is interrupted", async () => {
  const whole = await run(["--messages", "50"]);
  assert.equal(whole.code, 0, whole.stderr);
  assert.match(whole.stdout, /expected total/);
  assert.match(whole.stdout, /With the inbox every account is exact/);
  assert.equal(whole.stdout.includes("\x1b"), false);

  let interrupted = false;
  const cut = await run(["--messages", "20000"], (said, pid) => {
    if (interrupted || !said.includes("Sending")) return;
    interrupted = true;
    process.kill(pid, "SIGINT");
  });
  assert.equal(cut.code, 130, cut.stderr);
  assert.equal(cut.stdout, "");
  assert.match(cut.stderr, /The demo failed: Interrupted\./);
});

test("the demo fails unless the inbox's books are exact", () => {
  const side = { deliveries: 1, kills: 1, rate: 1, totalCents: 5, differenceCents: 0, wrongAccounts: 0 };
  const good = {
    ...{ seed: 1, distinct: 3, copies: 1, expectedCents: 5, copiesCents: 2, durationMs: 1 },
    withoutInbox: { ...side, differenceCents: 7, wrongAccounts: 2 },
    withInbox: { ...side, duplicates: 1, conflicts: 1, applied: 3 },
  };
  assert.deepEqual(faultsOf(good, 1), []);
  for (const bad of [{ differenceCents: -1 }, { wrongAccounts: 1 }, { applied: 2 }, { conflicts: 0 }]) {
    assert.equal(faultsOf({ ...good, withInbox: { ...good.withInbox, ...bad } }, 1).length, 1);
  }
});

test("one payment in five comes twice, and what is expected counts each once", () => {
  const { documents, later, distinct, changed, expectedCents, copiesCents } = makePayments(
    1_000,
    seededRandom(9),
  );
  const cents = (document: string): number =>
    (JSON.parse(document) as { data: { cents: number } }).data.cents;
  assert.equal(distinct, 1_000);
  assert.equal(documents.length + later.size, 1_200);
  assert.equal(changed, 20);
  assert.equal([...later].filter(([first, second]) => first !== second).length, changed);
  assert.equal(sum(expectedCents), sum([...new Set(documents)].map(cents)));
  assert.equal(
    copiesCents + sum(expectedCents),
    sum(documents.map(cents)) + sum([...later.values()].map(cents)),
  );
});

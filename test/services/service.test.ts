import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { type TestContext } from "node:test";

/** A test file that needs Kafka, on a machine that has neither a broker nor Java. */
async function run(t: TestContext, ci: boolean): Promise<{ code: number; said: string }> {
  const root = mkdtempSync(join(tmpdir(), "inbox-bare-"));
  t.after(() => rmSync(root, { recursive: true, force: true }));
  const { NODE_TEST_CONTEXT: _context, KAFKA_BROKERS: _brokers, CI: _ci, ...inherited } = process.env;
  const env = {
    ...inherited,
    ...(ci ? { CI: "true" } : {}),
    ...{ PATH: root, TEST_SERVICES_DIRECTORY: root, TEST_SERVICES_USUAL: "0", TEST_SERVICES_INSTALL: "0" },
  };
  const file = join(import.meta.dirname, "fixtures", "needs-kafka.ts");
  const args = ["--import", import.meta.resolve("tsx"), "--test", "--test-reporter=tap", file];
  return new Promise((resolve) => {
    execFile(process.execPath, args, { env }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code), said: stdout + stderr }),
    );
  });
}

test("a service that cannot be had is a skip with its reason on a person's machine", async (t) => {
  const { code, said } = await run(t, false);
  assert.equal(code, 0, said);
  assert.match(said, /^# skipped 2$/m);
  assert.match(said, /asks for the shared Kafka # SKIP no kafka: .*there is no java/);
  assert.match(
    said,
    /asks for a Kafka of its own # SKIP no kafka that can be started here: .*there is no java/,
  );
});

test("a service that cannot be had is a failure in CI", async (t) => {
  const { code, said } = await run(t, true);
  assert.equal(code, 1, said);
  assert.match(said, /^# fail 2$/m);
  assert.match(said, /^# skipped 0$/m);
  assert.match(said, /CI has everything the tests need, but: no kafka: .*there is no java/);
});

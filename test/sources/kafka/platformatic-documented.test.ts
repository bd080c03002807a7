import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { join } from "node:path";
import test from "node:test";
import { pathToFileURL } from "node:url";
import { extraClient, extraClientDirectory } from "../../services/kafka-clients.ts";
import { exampleDatabase, examplesOf, runExample } from "../../support/run-example.ts";
import { testTopic } from "./support.ts";

const packageName = "@platformatic/kafka";
const text = examplesOf("docs/kafka.md").find((example) => example.includes(packageName)) ?? "";

test("the source of docs/kafka.md with platformatic hands a record over", async (t) => {
  const at = await testTopic(t);
  if (at === undefined || (await extraClient(t, "platformatic")) === undefined) return;
  const database = await exampleDatabase(t);
  await at.publish([{ id: "e1" }]);
  const rest = `
    const id = await new Promise((resolve, reject) => {
      source.start({
        facts: { consumer: "c", lanes: 1, maxInHand: 10, maxInHandBytes: 1e6, handlerTimeoutMs: 1e3, extendEveryMs: 1e4 },
        deliver: async ([{ received }]) => resolve(received.id), warn: console.error, end: reject,
      }).catch(reject);
    });
    await source.stop();
    await source.close();
    console.log(id);`;
  const require = createRequire(join(extraClientDirectory("platformatic"), "package.json"));
  const example = text
    .replace(`"${packageName}"`, JSON.stringify(pathToFileURL(require.resolve(packageName)).href))
    .replace('groupId: "accounting"', `groupId: ${JSON.stringify(at.groupId)}`);
  const env = { KAFKA_BROKERS: at.brokers.join(","), TOPIC: at.topic };
  assert.equal(await runExample(t, database, "kafka", example + rest, env), "e1\n");
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { transactionWatch } from "../../../src/store/postgres/drivers/transaction-watch.ts";

/** A text, the command the server answered (or `fails`), and the status after it. */
type Step = readonly [text: string, command: string, expected: string];

const stories: Record<string, readonly Step[]> = {
  "a transaction from begin to commit": [
    ["select 1", "SELECT", "idle"],
    ["begin", "BEGIN", "open"],
    ["insert into t values (1)", "INSERT", "open"],
    ["commit", "COMMIT", "idle"],
  ],
  "begin with an isolation level, and start transaction": [
    ["begin isolation level repeatable read", "BEGIN", "open"],
    ["ROLLBACK;", "ROLLBACK", "idle"],
    ["START TRANSACTION READ ONLY", "START", "open"],
    ["end work", "COMMIT", "idle"],
  ],
  "an error inside and outside": [
    ["select 1 / 0", "fails", "idle"],
    ["begin", "BEGIN", "open"],
    ["select 1 / 0", "fails", "failed"],
    ["select 1", "fails", "failed"],
    ["commit", "ROLLBACK", "idle"],
  ],
  "a savepoint brings a failed transaction back": [
    ["begin", "BEGIN", "open"],
    ["savepoint s", "SAVEPOINT", "open"],
    ["select 1 / 0", "fails", "failed"],
    ["rollback to savepoint s", "ROLLBACK", "open"],
    ["release savepoint s", "RELEASE", "open"],
    ["rollback work", "ROLLBACK", "idle"],
  ],
  "a COMMIT that fails has ended the transaction": [
    ["begin", "BEGIN", "open"],
    ["commit", "fails", "idle"],
  ],
  "what may hide an end is not guessed": [
    ["begin", "BEGIN", "open"],
    ["insert into t values (1); commit", "COMMIT", "unknown"],
    ["rollback", "ROLLBACK", "idle"],
    ["call maintenance()", "CALL", "unknown"],
    ["commit", "COMMIT", "idle"],
    ["begin", "BEGIN", "open"],
    ["commit and chain", "COMMIT", "unknown"],
    ["rollback", "ROLLBACK", "idle"],
    ["/* c */ begin", "BEGIN", "unknown"],
  ],
};

for (const [name, steps] of Object.entries(stories)) {
  void test(name, () => {
    const watch = transactionWatch();
    for (const [text, command, expected] of steps) {
      if (command === "fails") watch.failed(text);
      else watch.succeeded(text, command);
      assert.equal(watch.status(), expected, text);
    }
  });
}

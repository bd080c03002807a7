import assert from "node:assert/strict";
import { test } from "node:test";
import { createInbox, retryIn, type Source, type Store } from "../../src/index.ts";

const store = { begin: () => undefined, maxConnections: 10 } as unknown as Store;

test("refuses options that break their rule, naming field, rule and value", () => {
  const wrong: readonly (readonly [object, RegExp])[] = [
    [{ store: undefined }, /store must be a store, such as postgres\(pool\)/],
    [{ store: {} }, /store must be a store/],
    [{ consumer: "" }, /consumer must be a text of 1 to 128 bytes without NUL; got ""/],
    [{ consumer: undefined }, /consumer must be a text .*; got undefined/],
    [{ consumer: "a\0b" }, /consumer must be a text/],
    [{ consumer: "é".repeat(65) }, /consumer must be a text/],
    [{ consumer: "\ud800" }, /consumer must be a text/],
    [{ handlerVersion: "" }, /handlerVersion must be a text/],
    [{ lanes: 0 }, /lanes must be a whole number from 1 to 256; got 0/],
    [{ lanes: 1.5 }, /lanes must be a whole number .*; got 1.5/],
    [{ lanes: Number.NaN }, /lanes must be a whole number .*; got NaN/],
    [{ lanes: 10 }, /lanes: 10 needs a pool of at least 11 connections; this one has max: 10/],
    [{ maxBatch: 10_001 }, /maxBatch must be a whole number from 1 to 10000/],
    [{ retry: { maxAttempts: 0 } }, /retry\.maxAttempts must be a whole number/],
    [{ retry: { factor: 0.5 } }, /retry\.factor must be a number from 1 to 100; got 0.5/],
    [{ retry: { environment: { jitter: 2 } } }, /retry\.environment\.jitter must be a number from 0 to 1/],
    [{ order: "none" }, /order must be one of park-key, block, skip; got "none"/],
    [
      { isolation: "read uncommitted" },
      /isolation must be one of read committed, repeatable read, serializable/,
    ],
    [{ fingerprint: { by: "md5" } }, /fingerprint\.by must be/],
    [{ fingerprint: { by: "json", except: ["sentAt"] } }, /fingerprint\.except\[0\]/],
  ];
  for (const [options, text] of wrong) {
    const make = () => createInbox({ store, consumer: "c", ...options });
    assert.throws(make, { code: "invalid-option", message: text }, JSON.stringify(options));
  }
});

test("refuses options of a run that break their rules, at once", () => {
  const inbox = createInbox({ store, consumer: "c" });
  const run = (options: object) => () => inbox.run({} as Source, () => undefined, options);
  assert.throws(run({ mode: "later" }), {
    code: "invalid-option",
    message: /mode must be inline or store-first/,
  });
  assert.throws(run({ workerLeaseMs: 5 }), {
    code: "invalid-option",
    message: /workerLeaseMs must be a whole/,
  });
  const work = () => inbox.work(() => undefined, { stopTimeoutMs: -1 });
  assert.throws(work, { code: "invalid-option", message: /stopTimeoutMs must be a whole/ });
});

test("takes the defaults with a pool of any size", () => {
  for (const maxConnections of [undefined, 1, 2, 100]) {
    createInbox({ store: { ...store, maxConnections }, consumer: "c" });
  }
});

test("refuses a wait that is no time", () => {
  for (const ms of [-1, Number.NaN, Number.POSITIVE_INFINITY]) assert.throws(() => retryIn(ms), RangeError);
});

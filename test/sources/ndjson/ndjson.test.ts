import assert from "node:assert/strict";
import { appendFileSync, mkdirSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PassThrough, Readable } from "node:stream";
import test from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { gzipSync } from "node:zlib";
import { ndjson } from "../../../src/sources/ndjson/ndjson.ts";
import type { Delivery } from "../../../src/sources/source.ts";
import { testIntake } from "../../support/intake.ts";
import { ack, ids, memoryStore, ownDirectory, plain, received, work } from "./harness.ts";

const line = (id: number | string): string => `{"id":"${id}"}\n`;
const lines = (count: number): string => Array.from({ length: count }, (_, i) => line(i)).join("");

test("a file without a byte, and one of blank lines, end at once", async (t) => {
  const directory = ownDirectory(t);
  for (const [name, content] of [
    ["empty", ""],
    ["blank", "\n \n\r\n"],
  ] as const) {
    const path = join(directory, name);
    writeFileSync(path, content);
    assert.deepEqual(await received(t, { from: path }), []);
  }
});

test("a missing file, a directory, and formats that are no lines of UTF-8 fail at start with a clear word", async (t) => {
  const directory = ownDirectory(t);
  const files: readonly (readonly [string, Buffer | undefined, RegExp])[] = [
    ["missing.ndjson", undefined, /missing\.ndjson cannot be read: there is no such file/],
    ["orders.ndjson.gz", gzipSync(line(1)), /gzip -dc/],
    ["utf16.ndjson", Buffer.from(`\ufeff${line(1)}`, "utf16le"), /UTF-16/],
  ];
  for (const [name, content, message] of files) {
    const path = join(directory, name);
    if (content !== undefined) writeFileSync(path, content);
    await assert.rejects(work(t, { from: path }), { code: "source-failed", message });
  }
  mkdirSync(join(directory, "folder"));
  await assert.rejects(work(t, { from: join(directory, "folder") }), {
    code: "source-failed",
    message: /is a directory/,
  });

  const { ended } = await work(t, { from: Readable.from([gzipSync(line(1))]) });
  assert.match((await ended)!.message, /gzip -dc/);
});

test("a stream that breaks ends the source with its error", async (t) => {
  const from = new PassThrough();
  const { delivered, ended } = await work(t, { from });
  from.write(line(1));
  await delivered(1);
  from.destroy(new Error("the pipe broke"));
  assert.match((await ended)!.message, /the pipe broke/);
});

test("what has arrived is handed over without waiting for more", async (t) => {
  const from = new PassThrough();
  const { deliveries, delivered, ended } = await work(t, { from });
  from.write(`${line(1)}{"id":`);
  await delivered(1);
  assert.equal(deliveries.length, 1);
  from.end('"2"}');
  assert.equal(await ended, undefined);
  assert.deepEqual(ids(deliveries.map(({ received }) => received)), ["1", "2"]);
});

test("reading waits for room, and batches keep the file's order", async (t) => {
  const path = join(ownDirectory(t), "orders.ndjson");
  writeFileSync(path, lines(1_000));
  let room: () => void = () => undefined;
  const { deliveries, delivered, ended } = await work(
    t,
    { from: path, maxBatch: 100 },
    () => ack,
    () => new Promise((resolve) => (room = resolve)),
  );
  for (let batch = 1; batch <= 10; batch += 1) {
    await delivered(batch * 100);
    assert.equal(deliveries.length, batch * 100);
    room();
  }
  await ended;
  assert.deepEqual(
    ids(deliveries.map((one) => one.received)),
    Array.from({ length: 1_000 }, (_, i) => String(i)),
  );
});

test("a retry comes again after its delay, flagged, as a new delivery; the source ends when all is settled", async (t) => {
  const from = Readable.from([lines(3)]);
  const { deliveries, ended } = await work(t, { from }, ({ received }, nth) => {
    const first = nth < 3;
    return first && ids([received])[0] === "1" ? { kind: "retry", afterMs: 5 } : ack;
  });
  await ended;
  assert.deepEqual(
    deliveries.map(({ received, redelivered }) => [ids([received])[0], redelivered]),
    [
      ["0", false],
      ["1", false],
      ["2", false],
      ["1", true],
    ],
  );
  assert.notEqual(deliveries[1], deliveries[3]);
});

test("a release comes again at once, not flagged: it was never begun", async (t) => {
  const { deliveries, ended } = await work(t, { from: Readable.from([line("a")]) }, (_, nth) =>
    nth === 0 ? { kind: "release" } : ack,
  );
  await ended;
  assert.deepEqual(
    deliveries.map(({ redelivered }) => redelivered),
    [false, false],
  );
});

test("what waits for a retry is bounded: reading stops until some of it is settled", async (t) => {
  const waiting: Delivery[] = [];
  const { source, delivered, ended } = await work(
    t,
    { from: Readable.from([lines(100)]), maxUnsettled: 20, maxBatch: 10 },
    (delivery) => {
      if (waiting.length < 20) return void waiting.push(delivery);
      return ack;
    },
  );
  await delivered(20);
  assert.equal(source.progress().unsettled, 20);
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(source.progress().unsettled, 20);
  await source.settle(waiting.map((delivery) => [delivery, ack]));
  await ended;
  assert.equal(source.progress().unsettled, 0);
});

test("settling twice, or what is not ours, changes nothing", async (t) => {
  const held: Delivery[] = [];
  const { source, delivered, ended } = await work(
    t,
    { from: Readable.from([lines(2)]) },
    (delivery) => void held.push(delivery),
  );
  await delivered(2);
  const [first, second] = held;
  await source.settle([[first!, ack]]);
  await source.settle([
    [first!, { kind: "retry", afterMs: 0 }],
    [{ ...second! }, ack],
  ]);
  assert.equal(source.progress().unsettled, 1);
  await source.settle([[second!, ack]]);
  await ended;
});

test("nothing is handed over after stop, and stop and close may come twice", async (t) => {
  const path = join(ownDirectory(t), "orders.ndjson");
  writeFileSync(path, lines(5_000));
  const store = memoryStore();
  const { source, deliveries, delivered } = await work(
    t,
    { from: path, checkpoints: store, maxBatch: 10 },
    (_, nth) => (nth === 5 ? { kind: "retry", afterMs: 0 } : ack),
  );
  await delivered(6);
  await source.stop();
  const count = deliveries.length;
  await source.stop();
  await source.close();
  await source.close();
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal(deliveries.length, count);
});

test("a long file is read in constant memory", async () => {
  const pad = "p".repeat(1_000);
  const total = 200_000;
  let made = 0;
  const from = new Readable({
    read() {
      if (made >= total) return void this.push(null);
      let chunk = "";
      for (let i = 0; i < 100; i += 1) chunk += `{"id":"${made++}","pad":"${pad}"}\n`;
      this.push(chunk);
    },
  });
  // What is garbage is no matter: only what is held counts.
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const held = (): number => {
    collect();
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    return heapUsed + arrayBuffers;
  };
  let count = 0;
  let most = 0;
  const before = held();
  const source = ndjson({ from, identity: plain });
  await new Promise<void>((resolve, reject) => {
    void source.start(
      testIntake({
        async deliver(list) {
          if (Math.floor(count / 20_000) !== Math.floor((count + list.length) / 20_000)) {
            most = Math.max(most, held() - before);
          }
          count += list.length;
          await source.settle(list.map((delivery) => [delivery, ack]));
        },
        end: (error) => (error ? reject(error) : resolve()),
      }),
    );
  });
  await source.close();
  assert.equal(count, total);
  assert.ok(
    most > 0 && most < 64 * 1024 * 1024,
    `of 200 MB, ${Math.round(most / 1024 / 1024)} MB were held at once`,
  );
});

test("a file that grows is read to its end, and the next run reads the rest", async (t) => {
  const path = join(ownDirectory(t), "orders.ndjson");
  const checkpoints = memoryStore();
  writeFileSync(path, line(1));
  const first = await work(t, { from: path, checkpoints });
  await first.ended;
  await first.close();
  appendFileSync(path, line(2) + line(3));
  const second = await work(t, { from: path, checkpoints });
  await second.ended;
  assert.deepEqual(ids(second.deliveries.map((one) => one.received)), ["2", "3"]);
  assert.deepEqual(
    second.deliveries.map(({ redelivered }) => redelivered),
    [false, false],
  );
  assert.match(second.notices.join(), /Going on in .* at byte 11 of 33/);
});

test("a last line that was not whole when it was read is read again when the file has grown, not otherwise", async (t) => {
  const path = join(ownDirectory(t), "orders.ndjson");
  const checkpoints = memoryStore();
  const run = async (): Promise<string[]> => {
    const worked = await work(t, { from: path, checkpoints });
    await worked.ended;
    await worked.close();
    return ids(worked.deliveries.map((one) => one.received));
  };
  writeFileSync(path, `${line(1)}{"id":"2`);
  assert.deepEqual(await run(), ["1", "[malformed]"]);
  assert.deepEqual(await run(), []);
  appendFileSync(path, `2"}\n${line(3)}`);
  assert.deepEqual(await run(), ["22", "3"]);
  assert.deepEqual(await run(), []);
});

test("another file under the same name starts at its beginning and says so", async (t) => {
  const path = join(ownDirectory(t), "orders.ndjson");
  const checkpoints = memoryStore();
  const run = async (): Promise<{ ids: string[]; notices: string }> => {
    const worked = await work(t, { from: path, checkpoints });
    await worked.ended;
    await worked.close();
    return { ids: ids(worked.deliveries.map((one) => one.received)), notices: worked.notices.join() };
  };
  writeFileSync(path, line("a") + line("b"));
  await run();
  for (const content of [line("x") + line("y"), line("x") + line("y") + line("z"), line("x")]) {
    writeFileSync(path, content.replaceAll("x", content.length.toString(36)));
    const second = await run();
    assert.equal(second.ids.length, content.split("\n").length - 1);
    assert.match(second.notices, /is not the file it was: starting at its beginning/);
  }
  truncateSync(path, 0);
  assert.match((await run()).notices, /is not the file it was/);
});

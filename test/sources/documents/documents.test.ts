import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { isRejected, type RejectedMessage } from "../../../src/message/message.ts";
import {
  documents,
  type DocumentsOptions,
  type DocumentsSource,
} from "../../../src/sources/documents/documents.ts";
import type { Delivery, Settlement } from "../../../src/sources/source.ts";
import { sampleBytes } from "../../message/samples.ts";
import { testIntake } from "../../support/intake.ts";
import { onTestEnd, type Scope } from "../../support/cleanup.ts";
import { ack, ids, memoryStore, ownDirectory } from "../ndjson/harness.ts";

interface Worked {
  readonly source: DocumentsSource;
  readonly deliveries: Delivery[];
  readonly notices: string[];
  readonly ended: Promise<Error | undefined>;
}

async function work(
  t: Scope,
  options: DocumentsOptions,
  answer: (delivery: Delivery, nth: number) => Settlement | undefined = () => ack,
): Promise<Worked> {
  const notices: string[] = [];
  const deliveries: Delivery[] = [];
  const source = documents({ onNotice: (text) => notices.push(text), ...options });
  onTestEnd(t, () => source.close());
  const ended = new Promise<Error | undefined>((resolve, reject) => {
    const deliver = async (list: readonly Delivery[]): Promise<void> => {
      const answers: [Delivery, Settlement][] = [];
      for (const delivery of list) {
        deliveries.push(delivery);
        const settlement = answer(delivery, deliveries.length - 1);
        if (settlement !== undefined) answers.push([delivery, settlement]);
      }
      await source.settle(answers);
    };
    source.start(testIntake({ deliver, end: resolve })).catch(reject);
  });
  return { source, deliveries, notices, ended };
}

const interchange = (reference: string): string =>
  `UNB+UNOA:3+S:14+R:14+260302:0915+${reference}'UNH+1+ORDERS:D:96A:UN'UNT+2+1'UNZ+1+${reference}'`;

const receivedIn = (deliveries: readonly Delivery[]): string[] =>
  ids(deliveries.map((delivery) => delivery.received));

test("an EDIFACT file gives each of its interchanges, and a broken one harms no other", async (t) => {
  const directory = ownDirectory(t);
  const from = join(directory, "orders.edi");
  writeFileSync(from, sampleBytes("13-edifact-multi-interchange.edi"));
  const { source, ended, deliveries } = await work(t, { from, identity: "edifact" });
  assert.equal(await ended, undefined);
  assert.deepEqual(receivedIn(deliveries), ["00042", "42", "00042", "00042", "[malformed]"]);
  assert.deepEqual(Object.values(source.progress().ignored), [1]);
  const rejected = deliveries.at(-1)!.received as RejectedMessage;
  assert.match(rejected.headers["document-file"]!, /^orders\.edi:[0-9a-f]{64}$/);
});

test("a directory is worked through in the order of names, the next file when the last is settled", async (t) => {
  const directory = ownDirectory(t);
  mkdirSync(join(directory, "done"));
  for (const name of ["c.edi", "a.edi", "b.edi"])
    writeFileSync(join(directory, name), interchange(name.slice(0, 1)) + interchange(name.slice(0, 1) + "2"));
  writeFileSync(join(directory, ".partial"), interchange("hidden"));
  const failedOnce = new Set<string>();
  const open = new Set<string>();
  const { ended, deliveries } = await work(t, { from: directory, identity: "edifact" }, (delivery) => {
    assert.ok(!isRejected(delivery.received));
    const { id } = delivery.received;
    open.add(id);
    // Whatever is open belongs to one file.
    assert.equal(new Set([...open].map((one) => one.slice(0, 1))).size, 1, [...open].join());
    if (!failedOnce.has(id)) {
      failedOnce.add(id);
      return { kind: "retry", afterMs: 1 };
    }
    open.delete(id);
    return ack;
  });
  assert.equal(await ended, undefined);
  assert.deepEqual(receivedIn(deliveries), [
    ...["a", "a2", "a", "a2"],
    ...["b", "b2", "b", "b2"],
    ...["c", "c2", "c", "c2"],
  ]);
});

test("a file that is done is not read again, a changed or unfinished one is", async (t) => {
  const directory = ownDirectory(t);
  const path = (name: string): string => join(directory, name);
  for (const name of ["1.edi", "2.edi", "3.edi"]) writeFileSync(path(name), interchange(name));
  const options: DocumentsOptions = { from: directory, identity: "edifact", checkpoints: memoryStore() };
  // The second file stays in hand until the source is stopped, as when the process dies.
  const first = await work(t, options, (_, nth) => {
    if (nth === 1) setImmediate(() => void first.source.stop().then(() => first.source.close()));
    return nth === 1 ? undefined : ack;
  });
  await new Promise<void>((resolve) => {
    const wait = (): void => void (first.deliveries.length === 2 ? resolve() : setImmediate(wait));
    wait();
  });
  await first.source.close();
  const second = await work(t, options);
  assert.equal(await second.ended, undefined);
  assert.deepEqual(
    second.deliveries.map(({ received, redelivered }) => [ids([received])[0], redelivered]),
    [
      ["2.edi", true],
      ["3.edi", false],
    ],
  );
  assert.match(second.notices.join(), /1 of 3 files were done before/);

  writeFileSync(path("1.edi"), interchange("new"));
  const third = await work(t, options);
  assert.equal(await third.ended, undefined);
  assert.deepEqual(receivedIn(third.deliveries), ["new"]);
});

test("a document over the limit is rejected with its beginning and the digest of the whole", async (t) => {
  const directory = ownDirectory(t);
  const from = join(directory, "big.edi");
  writeFileSync(from, interchange("1").padEnd(600_000, "\n"));
  const { ended, deliveries } = await work(t, { from, identity: "edifact", maxFileBytes: 300_000 });
  assert.equal(await ended, undefined);
  assert.deepEqual(receivedIn(deliveries), ["[too-large]"]);
  const { bytes, rejected } = deliveries[0]!.received as RejectedMessage;
  assert.equal(bytes!.byteLength, 65_536);
  assert.match(rejected.text, /600000 bytes, over the limit of 300000.*SHA-256 of the whole: [0-9a-f]{64}/);
});

test("a path that is not there, and a limit that is none, are refused with their names", async (t) => {
  const from = join(ownDirectory(t), "none");
  await assert.rejects((await work(t, { from, identity: "edifact" })).ended, {
    code: "source-failed",
    message: /none cannot be read: there is no such file/,
  });
  assert.throws(() => documents({ from, identity: "x12", maxFileBytes: 0 }), { code: "invalid-option" });
  assert.throws(() => documents({ from, identity: "wrong" as "x12" }), { code: "invalid-option" });
});

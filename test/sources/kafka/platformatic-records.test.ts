import assert from "node:assert/strict";
import test from "node:test";
import { readRecords } from "../../../src/sources/kafka/platformatic-records.ts";
import type {
  PlatformaticBatch,
  PlatformaticPartition,
} from "../../../src/sources/kafka/platformatic-shapes.ts";

const at = { topic: "payments", partition: 0 };
const transactional = 16;
const control = 32;

const mark = (kind: 0 | 1): Buffer => Buffer.from([0, 0, 0, kind]);

interface Drawn {
  readonly from: number;
  /** How far each record lies from `from`. */
  readonly records?: readonly number[];
  readonly last?: number;
  readonly producer?: number;
  readonly attributes?: number;
  readonly key?: Buffer;
}

function batch({ from, records = [0], last, producer = -1, attributes = 0, key }: Drawn): PlatformaticBatch {
  return {
    ...{ firstOffset: BigInt(from), lastOffsetDelta: last ?? records.at(-1) ?? 0, attributes },
    producerId: BigInt(producer),
    records: records.map((offsetDelta) => ({
      ...{ offsetDelta, key: key ?? null, value: null, headers: [] },
    })),
  };
}

const within = (from: number, producer: number): PlatformaticBatch =>
  batch({ from, producer, attributes: transactional });
const abort = (from: number, producer: number): PlatformaticBatch =>
  batch({ from, producer, attributes: transactional | control, key: mark(0) });
const commit = (from: number, producer: number): PlatformaticBatch =>
  batch({ from, producer, attributes: transactional | control, key: mark(1) });

function read(
  from: number,
  batches: readonly PlatformaticBatch[] | null,
  aborted: readonly (readonly [producer: number, first: number])[] | null = null,
): { readonly offsets: readonly number[]; readonly next: number } {
  const fetched: PlatformaticPartition = {
    ...{ partitionIndex: 0, errorCode: 0, records: batches },
    abortedTransactions:
      aborted?.map(([producer, first]) => ({ producerId: BigInt(producer), firstOffset: BigInt(first) })) ??
      null,
  };
  const { records, next } = readRecords(at, BigInt(from), fetched);
  return { offsets: records.map(({ offset }) => Number(offset)), next: Number(next) };
}

const cases: readonly (readonly [name: string, found: unknown, expected: unknown])[] = [
  ["nothing was fetched", read(7, null), { offsets: [], next: 7 }],
  [
    "a batch that begins before",
    read(7, [batch({ from: 5, records: [0, 1, 2, 3] })]),
    { offsets: [7, 8], next: 9 },
  ],
  [
    "what compaction left",
    read(5, [batch({ from: 5, records: [1, 4], last: 6 }), batch({ from: 20, records: [], last: 2 })]),
    { offsets: [6, 9], next: 23 },
  ],
  [
    "marks are no records",
    read(0, [within(0, 1), commit(1, 1), batch({ from: 2 })]),
    { offsets: [0, 2], next: 3 },
  ],
  [
    "rolled back, its mark not fetched yet",
    read(0, [batch({ from: 0 }), within(1, 1), within(2, 1)], [[1, 1]]),
    { offsets: [0], next: 3 },
  ],
  [
    "two roll-backs of one producer, and what it commits between and after",
    read(
      0,
      [within(0, 1), abort(1, 1), within(2, 1), commit(3, 1), within(4, 1), abort(5, 1), within(6, 1)],
      [
        [1, 4],
        [1, 0],
      ],
    ),
    { offsets: [2, 6], next: 7 },
  ],
  [
    "two producers at once, one of which rolls back",
    read(0, [within(0, 1), within(1, 2), within(2, 1), abort(3, 1), commit(4, 2), within(5, 1)], [[1, 0]]),
    { offsets: [1, 5], next: 6 },
  ],
  [
    "a roll-back that began before what was fetched",
    read(10, [within(10, 1), abort(11, 1), within(12, 1)], [[1, 4]]),
    { offsets: [12], next: 13 },
  ],
  [
    "a record that looks like a mark in a transaction that is rolled back",
    read(
      0,
      [batch({ from: 0, producer: 1, attributes: transactional, key: mark(0) }), within(1, 1)],
      [[1, 0]],
    ),
    { offsets: [], next: 2 },
  ],
];

for (const [name, found, expected] of cases)
  test(`records of a fetch: ${name}`, () => {
    assert.deepEqual(found, expected);
  });

test("headers keep their order and their doubles, and bytes that are no text", () => {
  const value = Buffer.from([0xff, 0x00]);
  const { records } = readRecords(at, 0n, {
    ...{ partitionIndex: 0, errorCode: 0 },
    records: [
      {
        ...{ firstOffset: 0n, lastOffsetDelta: 0, attributes: 0, producerId: -1n },
        records: [
          {
            ...{ offsetDelta: 0, key: value, value: null },
            headers: [
              [Buffer.from("a"), value],
              [Buffer.from("a"), null],
              [Buffer.from("__proto__"), Buffer.from("x")],
            ],
          },
        ],
      },
    ],
  });
  assert.deepEqual(records[0], {
    ...{ topic: "payments", partition: 0, offset: 0n, key: value, value: null },
    headers: [
      ["a", value],
      ["a", null],
      ["__proto__", Buffer.from("x")],
    ],
  });
});

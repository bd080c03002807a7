import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { createPartitionLog, type LogEntry } from "../../../src/sources/kafka/partition-log.ts";

test("the position to commit is the lowest unsettled offset, whatever the order of settling and the gaps", () => {
  const records = fc.array(fc.record({ gap: fc.nat(5), messages: fc.nat(3) }), { maxLength: 60 });
  fc.assert(
    fc.property(fc.bigInt(0n, 2n ** 62n), records, fc.infiniteStream(fc.nat()), (start, list, choices) => {
      const log = createPartitionLog(start);
      const open: LogEntry[] = [];
      const left = new Map<LogEntry, number>();
      let next = start;
      const check = (): void => {
        const first = [...left.keys()].map(({ offset }) => offset).sort((a, b) => (a < b ? -1 : 1))[0];
        assert.equal(log.settledTo(), first ?? next);
        assert.equal(log.unsettled, left.size);
      };
      const settleOne = (): void => {
        const [entry] = open.splice((choices.next().value as number) % open.length, 1);
        const rest = (left.get(entry as LogEntry) as number) - 1;
        if (rest === 0) left.delete(entry as LogEntry);
        else left.set(entry as LogEntry, rest);
        log.settle(entry as LogEntry);
      };
      for (const { gap, messages } of list) {
        const entry = log.add(next + BigInt(gap), messages);
        next = entry.offset + 1n;
        if (messages > 0) left.set(entry, messages);
        for (let i = 0; i < messages; i++) open.push(entry);
        check();
        if (open.length > 0 && (choices.next().value as number) % 2 === 0) settleOne();
        check();
      }
      while (open.length > 0) {
        settleOne();
        check();
      }
      assert.equal(log.tracked, 0);
    }),
  );
});

test("a record below what was read, and a second settlement, are refused", () => {
  const log = createPartitionLog(10n);
  const entry = log.add(12n, 1);
  assert.throws(() => log.add(12n, 1), /was read before/);
  log.settle(entry);
  assert.throws(() => log.settle(entry), /settled twice/);
});

test("without a committed offset nothing is known until the first record, or until the client tells", () => {
  const log = createPartitionLog(undefined);
  assert.equal(log.settledTo(), undefined);
  log.readTo(7n);
  assert.equal(log.settledTo(), 7n);
  log.readTo(3n);
  assert.equal(log.settledTo(), 7n);
});

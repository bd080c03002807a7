import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { PendingMessage, StoredMessage } from "../../../src/store/pending.ts";
import { entryOf, failed, leasesOf, name, stored, testStore, type TestStore } from "../support.ts";

/** What a message has come to, by what the commands were answered. */
type Fate = "waits" | "quarantined" | "discarded" | "applied";

/** A worker's messages in hand. `stale`: its leases are over, which it does not know. */
interface Hand {
  messages: readonly PendingMessage[];
  stale: boolean;
}

const workers = 3;
const decider = { by: "ann", why: "model" };

const command = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("accept" as const),
      keys: fc.array(fc.constantFrom("a", "b", "c"), { minLength: 1, maxLength: 5 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("inline" as const),
      key: fc.constantFrom("x", "y"),
      fails: fc.boolean(),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant("take" as const),
      worker: fc.nat(workers - 1),
      most: fc.integer({ min: 1, max: 6 }),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant("finish" as const),
      worker: fc.nat(workers - 1),
      count: fc.integer({ min: 1, max: 4 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("fail" as const),
      worker: fc.nat(workers - 1),
      counts: fc.boolean(),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant("quarantine" as const), worker: fc.nat(workers - 1) }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("give back" as const), worker: fc.nat(workers - 1) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("decide" as const),
      which: fc.nat(),
      kind: fc.constantFrom("retry" as const, "discard" as const),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("redeliver" as const), which: fc.nat() }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("become due" as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("expire" as const) }) },
);
type Command = typeof command extends fc.Arbitrary<infer C> ? C : never;

/**
 * Plays commands as workers, sources and operators would send them, and checks after each that no message is applied
 * twice, and none before one of its key that came earlier and is neither applied nor discarded.
 */
class Play {
  readonly #at: TestStore;
  readonly #hands: Hand[] = Array.from({ length: workers }, () => ({ messages: [], stale: false }));
  readonly #fates = new Map<string, Fate>();
  /** Ids by key, in the order of arrival. */
  readonly #arrived = new Map<string, string[]>();
  readonly #messages = new Map<string, StoredMessage>();
  #n = 0;

  constructor(at: TestStore) {
    this.#at = at;
  }

  #new(key: string): StoredMessage {
    const message = stored(`${key}${this.#n++}`, { key });
    this.#messages.set(message.id, message);
    return message;
  }

  #arrives({ id, key }: StoredMessage, fate: Fate): void {
    this.#arrived.set(key!, [...(this.#arrived.get(key!) ?? []), id]);
    this.#fates.set(id, fate);
  }

  #applied(id: string, key: string): void {
    assert.equal(this.#fates.get(id), "waits", `${id} was in pending`);
    const ids = this.#arrived.get(key)!;
    for (const earlier of ids.slice(0, ids.indexOf(id))) {
      assert.ok(["applied", "discarded"].includes(this.#fates.get(earlier)!), `${id} before ${earlier}`);
    }
    this.#fates.set(id, "applied");
  }

  /** The messages of a key that a worker has failed on are out of its hands. */
  #drop(hand: Hand, key: string | undefined): void {
    hand.messages = hand.messages.filter((message) => message.key !== key);
  }

  async run(step: Command): Promise<void> {
    const { store, begin, take, handle, makeDue, expireLeases } = this.#at;
    const hand = "worker" in step ? this.#hands[step.worker]! : undefined;
    const first = hand?.messages[0];
    switch (step.do) {
      case "accept": {
        const messages = step.keys.map((key) => this.#new(key));
        assert.deepEqual(await store.pending.accept(name, 1_000, messages), []);
        for (const message of messages) this.#arrives(message, "waits");
        return;
      }
      case "inline": {
        const message = this.#new(step.key);
        const tx = await begin();
        const { keysParked } = await tx.claim([message]);
        const behind = keysParked && (await tx.parkedKeys([step.key])).has(step.key);
        if (behind) await tx.storeBehind([message]);
        if (!behind && step.fails) {
          await tx.rollback();
          assert.equal((await store.pending.putOff(name, failed(message))).kind, "stored");
          return this.#arrives(message, "waits");
        }
        await tx.commit();
        this.#arrives(message, "waits");
        if (!behind) this.#applied(message.id, step.key);
        return;
      }
      case "take": {
        if (hand!.messages.length > 0) return;
        hand!.messages = (await take({ maxMessages: step.most })).messages;
        hand!.stale = false;
        return;
      }
      case "finish": {
        const part = hand!.messages.slice(0, step.count);
        if (part.length === 0) return;
        const held = await handle(part);
        if (hand!.stale) assert.deepEqual(held, []);
        else assert.equal(held.length, part.length);
        for (const message of part) if (held.includes(message.id)) this.#applied(message.id, message.key!);
        const rest = hand!.messages.slice(step.count);
        if (rest.length === 0 && !hand!.stale) await take({ maxMessages: 0, done: leasesOf(part) });
        hand!.messages = rest;
        return;
      }
      case "fail":
      case "quarantine": {
        if (first === undefined) return;
        if (step.do === "fail") {
          const answer = await store.pending.putOff(name, failed(first, { counts: step.counts }));
          assert.equal(answer.kind, hand!.stale ? "gone" : "stored");
        } else {
          assert.equal(await store.quarantine(name, entryOf(first)), hand!.stale ? "gone" : "stored");
          if (!hand!.stale) this.#fates.set(first.id, "quarantined");
        }
        const leases = leasesOf(hand!.messages);
        this.#drop(hand!, first.key);
        const open = new Set(hand!.messages.map(({ lease }) => lease.lane));
        const done = leases.filter(({ lane }) => !open.has(lane));
        return void (await take({ maxMessages: 0, done }));
      }
      case "give back": {
        await take({ maxMessages: 0, done: leasesOf(hand!.messages) });
        hand!.messages = [];
        return;
      }
      case "decide": {
        const open = await store.quarantined.list({});
        const entry = open[step.which % Math.max(1, open.length)];
        if (entry === undefined) return;
        assert.equal(typeof (await store.quarantined.decide(step.kind, entry.id, decider)), "string");
        this.#fates.set(entry.messageId!, step.kind === "retry" ? "waits" : "discarded");
        return;
      }
      case "redeliver": {
        const message = [...this.#messages.values()][step.which % Math.max(1, this.#messages.size)];
        if (message === undefined) return;
        const [notNew] = await store.pending.accept(name, 1_000, [message]);
        assert.equal(notNew?.seen?.processed, this.#fates.get(message.id) === "applied");
        return;
      }
      case "become due":
        return makeDue();
      case "expire":
        await expireLeases();
        for (const own of this.#hands) own.stale = true;
    }
  }

  /** Everything is decided on and worked through: nothing may be left, lost, or out of order. */
  async end(): Promise<void> {
    const { store, take, handle, makeDue, expireLeases, rows } = this.#at;
    for (const entry of await store.quarantined.list({ limit: 1_000 })) {
      await store.quarantined.decide("retry", entry.id, decider);
      this.#fates.set(entry.messageId!, "waits");
    }
    await expireLeases();
    await makeDue();
    for (let done = leasesOf([]); ;) {
      const { messages, more } = await take({ done, maxMessages: 7 });
      for (const id of await handle(messages)) this.#applied(id, this.#messages.get(id)!.key!);
      done = leasesOf(messages);
      if (messages.length === 0 && !more) break;
    }
    assert.deepEqual(await rows("select message_id, state from pending"), []);
    assert.deepEqual(await rows("select message_key from parked_key"), []);
    for (const [id, fate] of this.#fates)
      assert.ok(["applied", "discarded"].includes(fate), `${id} is ${fate}`);
    const processed = await rows<{ message_id: string }>(
      "select message_id from message where processed_at is not null order by 1",
    );
    const applied = [...this.#fates].filter(([, fate]) => fate === "applied").map(([id]) => id);
    assert.deepEqual(processed.map((row) => row.message_id).sort(), applied.sort());
  }
}

test(
  "whatever workers, sources and operators do: nothing is lost or applied twice, and each key keeps its order",
  { timeout: 180_000 },
  async (t) => {
    const at = await testStore(t);
    await fc.assert(
      fc.asyncProperty(fc.array(command, { maxLength: 80, size: "max" }), async (steps) => {
        await at.pool.query(
          "truncate message, pending, parked_key, quarantine, attempt, decision, decision_batch, repair, pending_lane",
        );
        await at.store.pending.openLanes(name.consumer);
        const play = new Play(at);
        for (const step of steps) await play.run(step);
        await play.end();
      }),
      { numRuns: 25, endOnFailure: false },
    );
  },
);

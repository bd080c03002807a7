import {
  batch,
  createInbox,
  migrate,
  postgres,
  sql,
  type Handler,
  type Message,
  type Store,
} from "../../src/index.ts";
import { benchPool, freshSchema, accountIn, paymentMaker, seeded, total, type Payment } from "../setup.ts";
import type { Contender, Measured, RunOptions } from "./contender.ts";
import { memorySource } from "./memory-source.ts";

interface Setup {
  readonly handler: Handler;
  readonly lanes: number;
  readonly keyed?: boolean;
  /** Whether the handler adds to balances, so that the effects can be counted. */
  readonly adds?: boolean;
  /** Measures the second delivery of every message instead of the first. */
  readonly again?: boolean;
  readonly store?: (store: Store) => Store;
}

const accountOf = (message: Message): number => accountIn(message.text() ?? "");

const credit = (message: Message) =>
  sql`update account set balance = balance + ${1} where id = ${accountOf(message)}`;

const creditAll = batch((messages) => {
  const deltas = new Map<number, number>();
  for (const message of messages) deltas.set(accountOf(message), (deltas.get(accountOf(message)) ?? 0) + 1);
  return sql`update account set balance = balance + d.delta
               from unnest(${[...deltas.keys()]}::int[], ${[...deltas.values()]}::bigint[]) as d (id, delta)
              where account.id = d.id`;
});

/** `credit`, and an effect of the same size for somebody else. */
const creditAndTell: Handler = (message, { outbox }) => {
  outbox.send({ destination: "there", key: message.key, payload: message.bytes });
  return credit(message);
};

const creditByTx: Handler = async (message, { tx }) => {
  await tx.query("update account set balance = balance + $1 where id = $2", [1, accountOf(message)]);
};

/** The same lanes without the claim: what the inbox itself costs. */
const withoutClaim = (store: Store): Store => ({
  ...store,
  async begin(name, options) {
    const tx = await store.begin(name, options);
    return { ...tx, claim: () => Promise.resolve({ notNew: [], keysParked: false }) };
  },
});

/** What asking for effects costs a handler that returns its statements. */
export const askingContenders: readonly Contender[] = [
  { name: "statements", run: (options) => measure({ handler: credit, lanes: 4 }, options) },
  {
    name: "statements and effects",
    run: (options) => measure({ handler: creditAndTell, lanes: 4 }, options),
  },
];

const contender = (name: string, setup: Setup): Contender => ({
  name,
  run: (options) => measure(setup, options),
});

export const inboxContenders: readonly Contender[] = [
  contender("tx", { handler: creditByTx, lanes: 8 }),
  contender("statements", { handler: credit, lanes: 4 }),
  contender("statements without claim", { handler: credit, lanes: 4, store: withoutClaim }),
  contender("set", { handler: creditAll, lanes: 4 }),
  contender("unkeyed", { handler: creditByTx, lanes: 8, keyed: false }),
  contender("claim only", { handler: () => [], lanes: 4, adds: false }),
  contender("duplicates", { handler: () => [], lanes: 4, adds: false, again: true }),
];

async function measure(setup: Setup, { url, accounts, ms, seed }: RunOptions): Promise<Measured> {
  const { schema, drop } = await freshSchema(url, accounts);
  const pool = benchPool(url, schema, 10, true);
  await migrate(pool, { schema });
  const store = (setup.store ?? ((own: Store) => own))(postgres(pool, { schema }));
  const inbox = createInbox({ store, consumer: "accounting", lanes: setup.lanes });
  const make = paymentMaker(accounts, seeded(seed));
  const delivered: Payment[] = [];

  const once = async (next: () => readonly Payment[] | undefined): Promise<Measured> => {
    const source = memorySource(next, setup.keyed ?? true);
    const { outcomes, durationMs } = await inbox.run(source, setup.handler).finished;
    return { messages: outcomes.applied + outcomes.duplicate, ms: durationMs, latencies: source.latencies };
  };
  const fresh = (forMs: number): Promise<Measured> => {
    const deadline = performance.now() + forMs;
    return once(() => {
      if (performance.now() >= deadline) return undefined;
      const list = make(500);
      if (setup.again) delivered.push(...list);
      return list;
    });
  };

  let measured = await fresh(ms);
  if (setup.again) {
    let at = 0;
    const again = await once(() => (at >= delivered.length ? undefined : delivered.slice(at, (at += 500))));
    if (again.messages !== delivered.length) throw new Error("a duplicate was lost");
    measured = again;
  }
  if (setup.adds !== false) {
    const effects = await total(pool);
    if (effects !== measured.messages)
      throw new Error(`${effects} effects for ${measured.messages} messages`);
  }
  await pool.end();
  await drop();
  return measured;
}

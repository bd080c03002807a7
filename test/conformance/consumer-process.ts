import { fork } from "node:child_process";
import { once } from "node:events";
import { relative } from "node:path";
import { bundle } from "../../scripts/bundle.ts";
import { onTestEnd, type Scope } from "../support/cleanup.ts";
import type { RunHealth } from "../../src/inbox/run.ts";
import type { Order, Pause, Plan, Report, StoreState, Told } from "./plan.ts";

/** A consumer process as the test sees it. */
export interface Consumer {
  readonly name: string;
  /** Ids handed over by its source so far, one for each delivery. */
  readonly delivered: readonly (string | undefined)[];
  /** Ids it has acknowledged, as far as its source has answered. */
  readonly acked: readonly (string | undefined)[];
  /** What it told of the database so far: only changes. */
  readonly store: readonly StoreState[];
  /** What it counted, once it ended by itself. */
  readonly report: Report | undefined;
  /** Resolves when so many deliveries have come. */
  receives(count: number): Promise<void>;
  /** Resolves when a delivery with one of these ids has come. */
  receivesOneOf(ids: readonly (string | undefined)[]): Promise<void>;
  /** Resolves when so many deliveries are acknowledged. */
  acks(count: number): Promise<void>;
  /** Resolves when it has come to a pause of its plan. */
  paused(at: Pause): Promise<void>;
  go(at: Pause): void;
  /** Resolves when the database is away, or back, as it says. */
  storeIs(state: StoreState): Promise<void>;
  /** Asks for its health until that has the status. */
  healthIs(status: RunHealth["status"]): Promise<RunHealth>;
  /** Resolves when it has died of SIGKILL; rejects where it ended in another way. */
  killed(): Promise<void>;
  /** Kills it now. */
  kill(): Promise<void>;
  /** SIGSTOP: it stands still, with its connections open. */
  freeze(): void;
  /** SIGCONT. */
  thaw(): void;
  /** SIGTERM; resolves when it has ended; rejects where it did not end well. */
  stop(): Promise<void>;
  /** It has ended. */
  readonly gone: boolean;
  /** Rejects when it ends and nobody asked for it. Never resolves. */
  readonly failure: Promise<never>;
}

const programs = new Map<string, Promise<string>>();

/** The consumer program with the subject's source in it. */
function programOf(module: string): Promise<string> {
  const known = programs.get(module);
  if (known !== undefined) return known;
  const from = relative(import.meta.dirname, module).replaceAll("\\", "/");
  const made = bundle({
    name: `conformance-${from.replace(/\.ts$/, "").replaceAll("/", "-")}`,
    directory: import.meta.dirname,
    code: `import { consume } from "./consumer.ts";
      import { makeSource } from "./${from}";
      await consume(makeSource);`,
  });
  programs.set(module, made);
  return made;
}

/** Starts a consumer; it ends with the test. What is waited for may take `patienceMs`. */
export async function startConsumer(
  t: Scope,
  module: string,
  plan: Plan,
  patienceMs: number,
): Promise<Consumer> {
  const program = await programOf(module);
  const child = fork(program, [JSON.stringify(plan)], {
    execArgv: [],
    stdio: ["ignore", "ignore", "pipe", "ipc"],
  });
  let said = "";
  child.stderr!.on("data", (chunk: Buffer) => (said = (said + chunk.toString()).slice(-4_000)));
  const closed = once(child, "close") as Promise<[number | null, NodeJS.Signals | null]>;
  onTestEnd(t, async () => {
    child.kill("SIGKILL");
    await closed;
  });

  const delivered: (string | undefined)[] = [];
  const acked: (string | undefined)[] = [];
  const paused: Pause[] = [];
  const store: StoreState[] = [];
  const healths: RunHealth[] = [];
  let ready = false;
  let gone = false;
  let report: Report | undefined;
  let ending = plan.die !== undefined;
  const waiting = new Set<() => void>();
  child.on("message", (told: Told) => {
    if ("ready" in told) ready = true;
    if ("delivered" in told) delivered.push(...told.delivered);
    if ("acked" in told) acked.push(...told.acked);
    if ("paused" in told) paused.push(told.paused);
    if ("store" in told) store.push(told.store);
    if ("health" in told) healths.push(told.health);
    if ("report" in told) report = told.report;
    for (const look of waiting) look();
  });
  const endOf = ([code, signal]: readonly [number | null, NodeJS.Signals | null]): string =>
    `The consumer ${plan.name} ended with ${code ?? signal}: ${said}`;

  const failure = new Promise<never>((_, reject) => {
    void closed.then((end) => {
      gone = true;
      if (!ending) reject(new Error(endOf(end)));
    });
  });
  failure.catch(() => undefined);

  /** Resolves when it holds, looked at with each thing told. */
  function until(what: string, holds: () => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      const done = (): void => {
        waiting.delete(look);
        clearTimeout(timer);
      };
      const fail = (why: string): void => {
        done();
        reject(new Error(`The consumer ${plan.name} ${why} before ${what}: ${said}`));
      };
      const look = (): void => {
        if (!holds()) return;
        done();
        resolve();
      };
      const timer = setTimeout(() => fail(`took ${patienceMs} ms`), patienceMs);
      waiting.add(look);
      void closed.then(() => fail("ended"));
      look();
    });
  }

  /** How it ended; with SIGABRT if that took too long. */
  async function ended(): Promise<[number | null, NodeJS.Signals | null]> {
    const timer = setTimeout(() => child.kill("SIGABRT"), patienceMs);
    const end = await closed;
    clearTimeout(timer);
    return end;
  }

  return {
    name: plan.name,
    delivered,
    acked,
    get report() {
      return report;
    },
    receives: (count) => until(`${count} deliveries`, () => delivered.length >= count),
    receivesOneOf: (ids) =>
      until("a delivery that another one had", () => delivered.some((id) => ids.includes(id))),
    acks: (count) => until(`${count} acknowledgements`, () => acked.length >= count),
    paused: (at) => until(`it paused at "${at}"`, () => paused.includes(at)),
    go(at) {
      paused.splice(paused.indexOf(at), 1);
      child.send({ go: at } satisfies Order);
    },
    store,
    storeIs: (state) => until(`the database was ${state}`, () => store.at(-1) === state),
    async healthIs(status) {
      for (const deadline = performance.now() + patienceMs; ;) {
        const asked = healths.length;
        child.send({ ask: "health" } satisfies Order);
        await until("it told of its health", () => healths.length > asked);
        const health = healths.at(-1)!;
        if (health.status === status) return health;
        if (performance.now() > deadline)
          throw new Error(`The health of ${plan.name} was not "${status}": ${JSON.stringify(health)}`);
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    },
    async killed() {
      const end = await ended();
      if (end[1] !== "SIGKILL") throw new Error(endOf(end));
    },
    async kill() {
      ending = true;
      child.kill("SIGKILL");
      await closed;
    },
    freeze: () => void child.kill("SIGSTOP"),
    thaw: () => void child.kill("SIGCONT"),
    async stop() {
      await until("it was ready", () => ready);
      ending = true;
      child.kill("SIGTERM");
      const end = await ended();
      if (end[0] !== 0 || report === undefined) throw new Error(endOf(end));
    },
    get gone() {
      return gone;
    },
    failure,
  };
}

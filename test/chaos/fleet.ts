import { fork, type ChildProcess } from "node:child_process";
import type { Broker } from "../../examples/demo/broker.ts";
import { forms, type Point } from "../crash/plan.ts";
import { databaseAway, type Arm, type Dying, type KilledServer } from "./protocol.ts";

/** Consumer processes, each replaced when it is gone. */
export interface Fleet {
  /** One that has messages in hand now, if there is one. */
  atWork(pick: (children: readonly ChildProcess[]) => ChildProcess): ChildProcess | undefined;
  /**
   * Kills it at the point, or without one at once; resolves with where it died. One that does not come to the point in
   * `patienceMs` is killed where it is.
   */
  kill(
    child: ChildProcess,
    point: Point | undefined,
    patienceMs: number,
  ): Promise<Point | "poison" | "any time">;
  /**
   * Has it kill the server when it comes to the point. False if it did not come there in `patienceMs`, or died before;
   * then it is dead.
   */
  killServer(child: ChildProcess, point: Point, server: number, patienceMs: number): Promise<boolean>;
  /** Ends that nobody asked for. */
  readonly unexpected: readonly string[];
  /** How many died of a poison message. */
  poisoned(): number;
  stop(): Promise<void>;
}

/** Starts `count` processes of the program. */
export function startFleet(
  program: string,
  broker: Broker,
  count: number,
  env: Readonly<Record<string, string>>,
): Fleet {
  const children = new Set<ChildProcess>();
  const unexpected: string[] = [];
  const deaths = new Map<ChildProcess, Dying["dying"]>();
  let started = 0;
  let poisoned = 0;
  let stopping = false;

  function start(): void {
    if (stopping) return;
    const child = fork(program, {
      execArgv: [],
      env: { ...process.env, ...env, CHAOS_FORM: forms[started++ % forms.length] },
      stdio: ["ignore", "inherit", "pipe", "ipc"],
    });
    let said = "";
    child.stderr!.on("data", (chunk: Buffer) => (said += chunk.toString()));
    child.on("message", (message: Dying | object) => {
      if (!("dying" in message)) return;
      deaths.set(child, message.dying);
      if (message.dying === "poison") poisoned++;
    });
    child.once("close", (code: number | null, signal: NodeJS.Signals | null) => {
      children.delete(child);
      if (signal === null && code !== databaseAway && !stopping)
        unexpected.push(`a consumer ended with ${code}: ${said.slice(0, 2_000)}`);
      // One that found no database comes again a little later, as a supervisor would do it.
      setTimeout(start, code === databaseAway ? 100 : 0);
    });
    children.add(child);
    broker.serve(child);
  }

  for (let i = 0; i < count; i++) start();

  return {
    atWork(pick) {
      const busy = [...children].filter((child) => child.connected && broker.inHand(child) > 0);
      return busy.length === 0 ? undefined : pick(busy);
    },
    async kill(child, point, patienceMs) {
      const closed = new Promise<void>((resolve) => child.once("close", () => resolve()));
      let timer: NodeJS.Timeout | undefined;
      if (point === undefined) child.kill("SIGKILL");
      else {
        child.send({ arm: point } satisfies Arm, () => undefined);
        timer = setTimeout(() => child.kill("SIGKILL"), patienceMs);
      }
      await closed;
      clearTimeout(timer);
      return deaths.get(child) ?? "any time";
    },
    async killServer(child, point, server, patienceMs) {
      let timer: NodeJS.Timeout | undefined;
      const killed = await new Promise<boolean>((resolve) => {
        child.on("message", (message: KilledServer | object) => "killedServer" in message && resolve(true));
        child.once("close", () => resolve(false));
        // Not left armed: the process id may be somebody else's later.
        timer = setTimeout(() => child.kill("SIGKILL"), patienceMs);
        child.send({ arm: point, server } satisfies Arm, () => undefined);
      });
      clearTimeout(timer);
      return killed;
    },
    unexpected,
    poisoned: () => poisoned,
    async stop() {
      stopping = true;
      await Promise.all(
        [...children].map(
          (child) =>
            new Promise<void>((resolve) => {
              child.once("close", () => resolve());
              child.kill("SIGKILL");
            }),
        ),
      );
    },
  };
}

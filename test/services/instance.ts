import { execFile } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { freePorts } from "./ports.ts";
import {
  alive,
  environmentOf,
  groupGone,
  launch,
  signalGroup,
  signalLeader,
  type Mark,
} from "./processes.ts";
import type { Place, Plan, Program, Way } from "./way.ts";

/** A service that lives in a directory, whichever process started it. */
export interface Instance<Facts> {
  readonly facts: Facts;
  readonly way: string;
  readonly directory: string;
  readonly pids: readonly number[];
  /** Whether all its processes live. */
  alive(): boolean;
  start(): Promise<void>;
  stop(): Promise<void>;
  restart(): Promise<void>;
  kill(): Promise<void>;
  /** Kills it and removes the directory with all that is in it. */
  remove(): Promise<void>;
  /** Ends its processes and does not wait: for a process that is ending itself. */
  killNow(): void;
  log(): string;
}

/** What `instance.json` of a directory holds: enough to find the service again and to end it. */
interface State {
  readonly way: string;
  readonly ports: Readonly<Record<string, number>>;
  readonly marks: readonly Mark[];
  /** Ends by SIGTERM, not by SIGKILL. */
  readonly gentle: boolean;
  /** Run before the directory is removed. */
  readonly remove?: Program | undefined;
}

const stateFile = "instance.json";
const run = promisify(execFile);

/** Makes an instance in a directory that is new or empty, and starts it. Ports that turn out to be taken are replaced. */
export async function createInstance<Facts>(way: Way<Facts>, directory: string): Promise<Instance<Facts>> {
  for (let tries = 1; ; tries++) {
    mkdirSync(directory, { recursive: true, mode: 0o755 });
    const place = { directory: realpathSync(directory), ports: await freePorts(way.ports) };
    const instance = instanceAt(way, place, []);
    try {
      await way.plan(place).setUp?.();
      await instance.start();
      return instance;
    } catch (error) {
      const said = `${String(error)}\n${instance.log()}`;
      await instance.remove();
      const taken = /EADDRINUSE|[Aa]ddress already in use|eaddrinuse|BindException/.test(said);
      if (!taken || tries === 3) throw error;
    }
  }
}

/** The instance that a directory holds, be it alive or dead; `undefined` where it holds none. */
export function foundInstance<Facts>(
  ways: readonly Way<Facts>[],
  directory: string,
): Instance<Facts> | undefined {
  let state: State;
  try {
    state = JSON.parse(readFileSync(join(directory, stateFile), "utf8")) as State;
  } catch {
    return undefined;
  }
  const way = ways.find(({ name }) => name === state.way);
  if (way === undefined) return undefined;
  return instanceAt(way, { directory: realpathSync(directory), ports: state.ports }, state.marks);
}

/** Ends what the instance of a directory left, whatever it was, and removes the directory. */
export async function clearInstance(directory: string): Promise<void> {
  if (!existsSync(directory)) return;
  const real = realpathSync(directory);
  try {
    const { marks, gentle, remove } = JSON.parse(readFileSync(join(real, stateFile), "utf8")) as State;
    if (gentle) {
      for (const mark of marks) signalLeader(mark, "SIGTERM");
      for (const mark of marks) await groupGone(mark, real, 20_000);
    }
    for (const mark of marks) signalGroup(mark, real, "SIGKILL");
    for (const mark of marks) await groupGone(mark, real, 10_000);
    await runProgram(remove, real);
  } catch {
    // It was never started.
  }
  rmSync(real, { recursive: true, force: true });
}

async function runProgram(what: Program | undefined, directory: string): Promise<void> {
  if (what === undefined || !existsSync(directory)) return;
  const { program, args, env } = what;
  await run(program, [...args], { cwd: directory, env: environmentOf(env), timeout: 60_000 });
}

function instanceAt<Facts>(way: Way<Facts>, place: Place, found: readonly Mark[]): Instance<Facts> {
  const plan: Plan<Facts> = way.plan(place);
  const { directory } = place;
  let marks = found;

  const remember = (list: readonly Mark[]): void => {
    marks = list;
    const draft = join(directory, `${stateFile}.${process.pid}`);
    const { gentle = false, remove } = plan;
    const state: State = { way: way.name, ports: place.ports, marks, gentle, remove };
    writeFileSync(draft, JSON.stringify(state));
    renameSync(draft, join(directory, stateFile));
  };
  const allAlive = (): boolean => marks.length === plan.commands.length && marks.every(alive);
  const log = (): string =>
    plan.commands
      .map(({ name }) => join(directory, `${name}.log`))
      .filter((path) => existsSync(path))
      .map((path) => readFileSync(path, "utf8"))
      .join("\n");
  const lastWords = (): string => log().trim().split("\n").slice(-8).join("\n");
  const killNow = (): void => {
    for (const mark of marks) {
      if (plan.gentle === true) signalLeader(mark, "SIGTERM");
      else signalGroup(mark, directory, "SIGKILL");
    }
  };
  const kill = async (): Promise<void> => {
    for (const mark of marks) signalGroup(mark, directory, "SIGKILL");
    for (const mark of marks) {
      if (!(await groupGone(mark, directory, 20_000)))
        throw new Error(`${way.name}: process ${mark.pid} outlived SIGKILL.`);
    }
    await runProgram(plan.afterKill, directory);
    if (existsSync(directory)) remember([]);
  };

  /** Its port may belong to another program by now, which would answer in place of ours. */
  const refuseTaken = async (): Promise<void> => {
    const taken = await plan.check().then(
      () => true,
      () => false,
    );
    if (taken) throw new Error(`${way.name}: something else answers at its address, EADDRINUSE.`);
  };

  const instance: Instance<Facts> = {
    get facts() {
      return plan.facts;
    },
    way: way.name,
    directory,
    get pids() {
      return marks.map(({ pid }) => pid);
    },
    alive: allAlive,
    async start() {
      const deadline = performance.now() + (plan.startTimeoutMs ?? 60_000);
      // One that lives may still be coming up: whoever started it may have died on the way.
      const living = allAlive();
      if (!living) {
        await kill();
        await plan.beforeStart?.();
        await refuseTaken();
        for (const command of plan.commands) remember([...marks, await launch(command, directory)]);
      }
      for (;;) {
        try {
          await plan.check();
          return;
        } catch (error) {
          const ended = !allAlive();
          if (!ended && performance.now() < deadline) {
            await sleep(50);
            continue;
          }
          if (!living) killNow();
          throw new Error(
            `${way.name} ${ended ? "ended at its start" : "does not do its work"}: ${String(error)}\n${lastWords()}`,
            { cause: error },
          );
        }
      }
    },
    async stop() {
      // The last started first: what it needs stays until it has ended.
      for (const mark of marks.toReversed()) {
        signalLeader(mark, "SIGTERM");
        await groupGone(mark, directory, plan.stopTimeoutMs ?? 20_000);
      }
      await kill();
    },
    async restart() {
      await instance.stop();
      await instance.start();
    },
    kill,
    killNow,
    async remove() {
      await kill();
      await runProgram(plan.remove, directory);
      rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
    },
    log,
  };
  return instance;
}

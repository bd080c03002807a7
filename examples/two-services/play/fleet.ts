import { fork, type ChildProcess } from "node:child_process";
import { join } from "node:path";
import { bundle } from "../../../scripts/bundle.ts";

/** The programs, and how many processes of each run. */
export const programs = {
  "orders service": { file: "orders/service.ts", processes: 1 },
  "orders relay": { file: "orders/relay.ts", processes: 2 },
  "ledger service": { file: "ledger/service.ts", processes: 2 },
  "ledger relay": { file: "ledger/relay.ts", processes: 2 },
  "receipts service": { file: "receipts/service.ts", processes: 1 },
} as const;

export type ProgramName = keyof typeof programs;

export interface Member {
  readonly name: ProgramName;
  readonly child: ChildProcess;
}

/** Processes of the services, each started again when it is gone. */
export interface Fleet {
  /** Those that run now. */
  members(): readonly Member[];
  /** Kills it with SIGKILL and resolves when it is gone. */
  kill(member: Member): Promise<void>;
  /** Processes may end by themselves while `work` takes a database away, and shortly after: they are started again. */
  excuse<T>(work: () => Promise<T>): Promise<T>;
  /** Last words of those that ended by themselves, by whether a database was away. */
  readonly ended: { readonly excused: readonly string[]; readonly unexpected: readonly string[] };
  /** Asks all to end in good order. Resolves with the names of those that did not, once they listened to SIGTERM. */
  stop(withinMs: number): Promise<readonly string[]>;
  /** Kills all of them. */
  close(): Promise<void>;
}

const restartAfterMs = 100;
const excusedForMs = 3_000;
const hopeless = 10;

export interface FleetOptions {
  readonly env: Readonly<Record<string, string>>;
  /** A module that is loaded before each program. */
  readonly preload: string;
  /** Called when so many have ended by themselves that there is no use in going on. */
  readonly onHopeless: (error: Error) => void;
}

/** Starts all programs. */
export async function startFleet({ env, preload, onHopeless }: FleetOptions): Promise<Fleet> {
  const members = new Map<ChildProcess, Member>();
  const ended = { excused: [] as string[], unexpected: [] as string[] };
  const listening = new Set<ChildProcess>();
  const endings = new Map<ChildProcess, { code: number | null; signal: NodeJS.Signals | null }>();
  let stopping = false;
  let away = 0;
  let lastAway = -Infinity;

  const all = Object.entries(programs) as [ProgramName, (typeof programs)[ProgramName]][];
  const files = await Promise.all(all.map(([, { file }]) => bundle(join(import.meta.dirname, "..", file))));
  const before = await bundle(preload);

  function start(name: ProgramName, file: string): void {
    if (stopping) return;
    const child = fork(file, {
      execArgv: ["--import", before],
      env: { ...process.env, ...env },
      stdio: ["ignore", "inherit", "pipe", "ipc"],
    });
    members.set(child, { name, child });
    child.on("message", () => listening.add(child));
    let said = "";
    child.stderr!.on("data", (chunk: Buffer) => (said = (said + chunk.toString()).slice(-4_000)));
    child.once("close", (code: number | null, signal: NodeJS.Signals | null) => {
      members.delete(child);
      endings.set(child, { code, signal });
      if (stopping) return;
      if (signal === null) {
        const excused = away > 0 || performance.now() - lastAway < excusedForMs;
        const words = `${name} ended with ${code}: ${said.trim()}`;
        ended[excused ? "excused" : "unexpected"].push(words);
        if (ended.unexpected.length === hopeless) onHopeless(new Error(words));
      }
      // As a supervisor would: at once after a death, a little later when it could not start.
      setTimeout(() => start(name, file), signal === null ? restartAfterMs : 0);
    });
  }

  for (const [i, [name, { processes }]] of all.entries()) {
    for (let n = 0; n < processes; n++) start(name, files[i]!);
  }

  const gone = (child: ChildProcess): Promise<void> =>
    new Promise((resolve) => {
      if (!members.has(child)) resolve();
      else child.once("close", () => resolve());
    });

  return {
    members: () => [...members.values()],
    kill({ child }) {
      child.kill("SIGKILL");
      return gone(child);
    },
    async excuse(work) {
      away++;
      try {
        return await work();
      } finally {
        away--;
        lastAway = performance.now();
      }
    },
    ended,
    async stop(withinMs) {
      stopping = true;
      const last = [...members.values()];
      for (const { child } of last) child.kill("SIGTERM");
      const timer = setTimeout(() => last.forEach(({ child }) => child.kill("SIGKILL")), withinMs);
      await Promise.all(last.map(({ child }) => gone(child)));
      clearTimeout(timer);
      return last
        .filter(({ child }) => {
          const { code, signal } = endings.get(child)!;
          // One that has just been started has nothing in hand yet.
          return code !== 0 && (signal !== "SIGTERM" || listening.has(child));
        })
        .map(({ name, child }) => `${name} (${JSON.stringify(endings.get(child))})`);
    },
    async close() {
      stopping = true;
      const last = [...members.values()];
      for (const { child } of last) child.kill("SIGKILL");
      await Promise.all(last.map(({ child }) => gone(child)));
    },
  };
}

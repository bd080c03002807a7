import pg from "pg";
import { askingContenders } from "../contenders/inbox.ts";
import { median } from "../setup.ts";
import { parentOf, processorMs } from "./cpu.ts";

/** What it costs a handler that returns its statements to ask for an effect of its message's size as well. */
export interface Asking {
  readonly rates: Readonly<Record<string, { readonly rate: number; readonly micros: number }>>;
  /** The part that effects add to the time a message takes. */
  readonly added: number;
  /** The part that they add to the processor time of both sides. */
  readonly addedProcessor: number;
}

/** What one process is to measure: so many rounds of so many milliseconds for each way. */
export interface AskingJob {
  readonly url: string;
  readonly rounds: number;
  readonly ms: number;
}

/** Messages of 150 bytes through a run, with and without an effect each, by turns. */
export async function measureAsking({ url, rounds, ms }: AskingJob): Promise<Asking> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
  const server = parentOf(rows[0]!.pid);
  await client.end();
  const samples = new Map(askingContenders.map(({ name }) => [name, { micros: [0], cpu: [0] }]));
  for (const one of samples.values()) for (const list of Object.values(one)) list.pop();
  for (let round = 0; round < rounds; round++) {
    for (const { name, run } of askingContenders) {
      const own = process.cpuUsage();
      const before = processorMs(server);
      const measured = await run({ url, accounts: 1_000, ms, seed: round });
      const { user, system } = process.cpuUsage(own);
      const cpuMs = (user + system) / 1_000 + processorMs(server) - before;
      const sample = samples.get(name)!;
      sample.micros.push((measured.ms / measured.messages) * 1_000);
      sample.cpu.push((cpuMs / measured.messages) * 1_000);
    }
  }
  const rates = Object.fromEntries(
    [...samples].map(([name, { micros, cpu }]) => [
      name,
      { rate: Math.round(1_000_000 / median(micros)), micros: Math.round(median(cpu) * 10) / 10 },
    ]),
  );
  const [without, withEffects] = askingContenders.map(({ name }) => samples.get(name)!);
  const part = (of: "micros" | "cpu"): number =>
    Math.round((median(withEffects![of]) / median(without![of]) - 1) * 100) / 100;
  return { rates, added: part("micros"), addedProcessor: part("cpu") };
}

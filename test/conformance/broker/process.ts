import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bundle } from "../../../scripts/bundle.ts";
import { onTestEnd, type Scope } from "../../support/cleanup.ts";

/** The reference broker in a process of its own, with its log in a file. */
export interface BrokerProcess {
  readonly port: number;
  /** Kills it and starts it again on the same port, with the same log. */
  restart(): Promise<void>;
}

/** Starts a broker; it ends with the scope. */
export async function startBroker(t: Scope, leaseMs: number): Promise<BrokerProcess> {
  const program = await bundle(join(import.meta.dirname, "main.ts"));
  const directory = mkdtempSync(join(tmpdir(), "inbox-broker-"));
  onTestEnd(t, () => rmSync(directory, { recursive: true, force: true }));

  const start = async (port: number): Promise<{ port: number; kill: () => Promise<void> }> => {
    const args = [join(directory, "log"), String(port), String(leaseMs)];
    const child = fork(program, args, { execArgv: [] });
    const exited = once(child, "exit");
    const told = once(child, "message") as Promise<[{ port: number }]>;
    const failed = exited.then(([code, signal]) => {
      throw new Error(`The broker ended with ${String(code ?? signal)}.`);
    });
    failed.catch(() => undefined);
    const [{ port: given }] = await Promise.race([told, failed]);
    return {
      port: given,
      async kill() {
        child.kill("SIGKILL");
        await exited;
      },
    };
  };

  let running = await start(0);
  onTestEnd(t, () => running.kill());
  return {
    port: running.port,
    async restart() {
      await running.kill();
      running = await start(running.port);
    },
  };
}

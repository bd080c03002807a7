import { randomUUID } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { processBirth, sameProcessAlive } from "./process-alive.ts";

/** The processes that use one server, each by a file. The last one that leaves stops the server. */
export interface Users {
  /** Adds this process. The function it returns takes it off again; twice is harmless. */
  join(): () => void;
  /** How many living processes use the server; what dead ones left is removed. */
  count(): number;
}

/** Keeps the users of a server in `directory`. */
export function usersIn(directory: string): Users {
  return {
    join() {
      mkdirSync(directory, { recursive: true, mode: 0o700 });
      const path = join(directory, `${process.pid}-${randomUUID()}`);
      writeFileSync(path, processBirth(process.pid), { mode: 0o600 });
      return () => rmSync(path, { force: true });
    },
    count() {
      let living = 0;
      for (const name of namesIn(directory)) {
        const path = join(directory, name);
        if (sameProcessAlive(Number.parseInt(name, 10), contentOf(path))) living += 1;
        else rmSync(path, { force: true });
      }
      return living;
    },
  };
}

function namesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

function contentOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

import { once } from "node:events";
import { createInterface } from "node:readline/promises";
import type { Redact } from "./redact.ts";

/** What a command sees of the outside: data goes to `print`, talk to `say`. */
export interface Io {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Writes a line of data to stdout. */
  print(line: string): void;
  /** Writes bytes to stdout as they are. */
  printBytes(bytes: Uint8Array): void;
  /** Writes a line for people to stderr. */
  say(line: string): void;
  /** Whether a person watches stderr, so that a line may be written over. */
  readonly terminal: boolean;
  /** Replaces the last status line on a terminal; `""` clears it. Nothing elsewhere. */
  status(line: string): void;
  /** Writes text to stdout and waits while its reader is slower: for more than fits in memory. */
  write(text: string): Promise<void>;
  /** Asks a person on the terminal; `""` for one who does not answer, `undefined` where there is none. */
  ask(question: string): Promise<string | undefined>;
  readonly redact: Redact;
}

/** The process's own streams. */
export function processIo(redact: Redact): Io {
  const terminal = process.stderr.isTTY === true;
  let shown = false;
  const status = (line: string): void => {
    if (!terminal || (line === "" && !shown)) return;
    process.stderr.write(`\r\x1b[2K${line.slice(0, Math.max(20, (process.stderr.columns || 80) - 1))}`);
    shown = line !== "";
  };
  return {
    env: process.env,
    print: (line) => void process.stdout.write(`${line}\n`),
    printBytes: (bytes) => void process.stdout.write(bytes),
    say: (line) => {
      status("");
      process.stderr.write(`${redact(line)}\n`);
    },
    terminal,
    status,
    write: async (text) => {
      if (!process.stdout.write(text)) await once(process.stdout, "drain");
    },
    async ask(question) {
      if (!terminal || process.stdin.isTTY !== true) return undefined;
      status("");
      const lines = createInterface({ input: process.stdin, output: process.stderr });
      // Ctrl-C and Ctrl-D are answers, too: they say nothing, so nothing is done.
      lines.on("SIGINT", () => lines.close());
      const closed = once(lines, "close").then(() => "");
      const answer = lines.question(question).catch((error: Error) => {
        if (error.name === "AbortError") return "";
        throw error;
      });
      try {
        return await Promise.race([answer, closed]);
      } finally {
        lines.close();
      }
    },
    redact,
  };
}

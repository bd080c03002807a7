import type { WriteStream } from "node:tty";
import type { Paint } from "./paint.ts";
import { money } from "./result.ts";
import type { SideCounts } from "./side.ts";

/** One side as it stands. */
export interface Standing {
  readonly name: string;
  readonly counts: SideCounts;
  /** All that will be acknowledged. */
  readonly copies: number;
  readonly totalCents: number;
  /** What the total is to be in the end. */
  readonly expectedCents: number;
}

/** Shows how it goes while it goes. */
export interface View {
  /** Called several times a second. */
  show(sides: readonly Standing[]): void;
  /** Clears what is not to stay. */
  close(): void;
}

const number = new Intl.NumberFormat("en-US");
const barWidth = 24;
const lineEveryMs = 2_000;

/** On a terminal lines that are written over; elsewhere a plain line every two seconds. */
export function createView(stream: WriteStream, env: NodeJS.ProcessEnv, paint: Paint): View {
  return stream.isTTY && env["TERM"] !== "dumb" ? liveView(stream, paint) : plainView(stream);
}

function liveView(stream: WriteStream, paint: Paint): View {
  let shown = 0;
  const clear = (): string => (shown === 0 ? "" : `\x1b[${shown}A\x1b[0J`);
  return {
    show(sides) {
      const lines = sides.flatMap(({ name, counts, copies, totalCents, expectedCents }) => {
        const part = Math.min(1, counts.acks / copies);
        const full = Math.round(part * barWidth);
        const bar = paint("cyan", "█".repeat(full)) + paint("dim", "░".repeat(barWidth - full));
        const total = `${money(totalCents)} of ${money(expectedCents)}`;
        const amount = totalCents > expectedCents ? paint("red", total) : total;
        return [
          `${paint("bold", name.padEnd(14))} ${bar} ${number.format(counts.acks).padStart(6)} of ${number.format(copies)}`,
          `${" ".repeat(14)} ${number.format(counts.rate).padStart(6)}/s   ${paint("red", `${String(counts.kills).padStart(3)} killed`)}   ${amount}`,
        ];
      });
      // One write, so that nothing flickers.
      stream.write(`${clear()}${lines.join("\n")}\n`);
      shown = lines.length;
    },
    close() {
      stream.write(clear());
      shown = 0;
    },
  };
}

function plainView(stream: WriteStream): View {
  let last = performance.now();
  return {
    show(sides) {
      if (performance.now() - last < lineEveryMs) return;
      last = performance.now();
      const parts = sides.map(
        ({ name, counts, copies, totalCents }) =>
          `${name} ${number.format(counts.acks)} of ${number.format(copies)}, ${counts.kills} killed, ${money(totalCents)}`,
      );
      stream.write(`${parts.join("; ")}\n`);
    },
    close() {},
  };
}

import type { Io } from "./io.ts";
import { UsageError } from "./usage-error.ts";

/** Asks for the number, which nobody types without having read it. Throws a usage error where nobody can be asked. */
export async function confirmedCount(io: Io, kind: string, count: number, fit: string): Promise<number> {
  const answer = await io.ask(`${fit}. To ${kind} ${count === 1 ? "it" : "them"}, type the number: `);
  if (answer === undefined) throw new UsageError(`${fit}. Confirm with --expected ${count}.`);
  if (answer.trim() === String(count)) return count;
  throw new UsageError("Nothing is decided.");
}

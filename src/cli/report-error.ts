import { CommanderError } from "commander";
import { InboxError } from "../errors.ts";
import { exitCodes, type ExitCode } from "./exit-codes.ts";
import type { Io } from "./io.ts";
import { UsageError } from "./usage-error.ts";

/** Tells a person what went wrong, without secrets and without control characters, and chooses the exit code. */
export function reportError(error: unknown, io: Io): ExitCode {
  if (error instanceof CommanderError) {
    // Commander has already printed; help and the version come this way too.
    return error.exitCode === 0 ? exitCodes.fine : exitCodes.wrongUsage;
  }
  for (const line of linesOf(error)) io.say(`inbox: ${visible(line)}`);
  const wrongUsage =
    error instanceof UsageError || (error instanceof InboxError && error.code === "invalid-option");
  return wrongUsage ? exitCodes.wrongUsage : exitCodes.failed;
}

/** The error's message and those of its causes, as far as they say something new. */
function linesOf(error: unknown): readonly string[] {
  const lines: string[] = [];
  for (let next = error, depth = 0; next !== undefined && next !== null && depth < 5; depth += 1) {
    const text = messageOf(next);
    if (!lines.some((line) => line.includes(text))) lines.push(depth === 0 ? text : `because: ${text}`);
    next = next instanceof Error ? next.cause : undefined;
  }
  return lines;
}

function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === "") return error.errors.map(messageOf).join("; ");
  if (error instanceof Error) return error.message || error.name;
  return typeof error === "string" ? error : "an unknown error";
}

function visible(text: string): string {
  return text.replace(
    /[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

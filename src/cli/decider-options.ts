import type { Command } from "commander";
import { userInfo } from "node:os";
import type { Decider } from "../store/quarantine-store.ts";
import type { Io } from "./io.ts";
import { UsageError } from "./usage-error.ts";

/** Who decides, and why. */
export interface DeciderOptions {
  readonly why?: string;
  readonly by?: string;
}

/** `--why` and `--by`, the same for every decision. */
export const addDeciderOptions = (command: Command): Command =>
  command
    .option("--why <reason>", "the reason, which is kept; asked for on a terminal")
    .option("--by <name>", "who decides, which is kept (default: the user of the operating system)");

/** Throws a usage error where nobody can be asked. */
export async function deciderOf(io: Io, { why, by }: DeciderOptions): Promise<Decider> {
  const reason = why ?? (await io.ask("Why? "));
  if (reason === undefined || reason.trim() === "") {
    throw new UsageError("A decision is kept with its reason. Give --why.");
  }
  const who = by ?? systemUser(io);
  if (who === undefined || who.trim() === "") {
    throw new UsageError("A decision is kept with who made it. Give --by.");
  }
  return { by: who, why: reason };
}

function systemUser(io: Io): string | undefined {
  try {
    return userInfo().username;
  } catch {
    // A user id without a name, as in many containers.
    return io.env["USER"] ?? io.env["LOGNAME"];
  }
}

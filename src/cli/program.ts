import { Command, Help, type Option } from "commander";
import { readFileSync } from "node:fs";
import { eraseCommand } from "./commands/erase.ts";
import { explainCommand } from "./commands/explain.ts";
import { identifyCommand } from "./commands/identify.ts";
import { migrateCommand } from "./commands/migrate.ts";
import { outboxCommand } from "./commands/outbox.ts";
import { pendingCommand } from "./commands/pending.ts";
import { quarantineCommand } from "./commands/quarantine.ts";
import { reconcileCommand } from "./commands/reconcile.ts";
import { relayCommand } from "./commands/relay.ts";
import { replayCommand } from "./commands/replay.ts";
import { retentionCommand } from "./commands/retention.ts";
import { runCommand } from "./commands/run.ts";
import { exitCodes, type ExitCode } from "./exit-codes.ts";
import type { Io } from "./io.ts";
import { notesOf } from "./notes.ts";
import { reportError } from "./report-error.ts";

const common = ["--dry-run", "--why", "--by", "--schema", "--config", "--json", "--help"];

/** A command says how it ended; what it throws is reported by `runProgram`. */
export type Action = (code: ExitCode) => void;

const examples = `
Examples:
  $ inbox migrate                                    create or update the inbox's tables
  $ inbox migrate --print > inbox.sql                the same as SQL, for a migration tool of your own
  $ inbox run handler.ts --source orders.ndjson      apply every message of a file once
  $ tail -f events.ndjson | inbox run handler.ts --source -
  $ inbox identify event.json                        which id the inbox would take, and why
  $ inbox quarantine groups                          what needs a person, failures that look alike together
  $ inbox quarantine show 17
  $ inbox quarantine retry 17 --why "the account is there now"
  $ inbox pending list                               what is stored and not handled yet
  $ inbox explain order-17                           what became of a message, and what it waits for

The database is DATABASE_URL, or what PGHOST and the other variables of libpq name. Without either, "inbox run" starts
the PostgreSQL that npm ships, under .inbox/postgres.

Exit codes: 0 fine, 1 failed, 2 wrong usage, 3 found something for a person to look at.`;

/** Runs the command line and resolves with the exit code. Never rejects. */
export async function runProgram(args: readonly string[], io: Io): Promise<ExitCode> {
  let code: ExitCode = exitCodes.fine;
  const ended: Action = (value) => (code = value);
  const program = new Command("inbox")
    .description("Effects in PostgreSQL applied once for each message, however often the broker delivers it.")
    .version(packageVersion(), "-V, --version")
    .addHelpText("after", notesOf(examples))
    .showHelpAfterError("(inbox --help shows how)");
  program
    .addCommand(runCommand(io, ended))
    .addCommand(migrateCommand(io, ended))
    .addCommand(quarantineCommand(io, ended))
    .addCommand(pendingCommand(io, ended))
    .addCommand(outboxCommand(io, ended))
    .addCommand(relayCommand(io, ended))
    .addCommand(explainCommand(io, ended))
    .addCommand(reconcileCommand(io, ended))
    .addCommand(retentionCommand(io, ended))
    .addCommand(replayCommand(io, ended))
    .addCommand(eraseCommand(io, ended))
    .addCommand(identifyCommand(io, ended));
  quietly(program, io);
  try {
    await program.parseAsync([...args], { from: "user" });
    return code;
  } catch (error) {
    return reportError(error, io);
  }
}

/** Commander ends the process and writes by itself unless each command is told otherwise. */
function quietly(command: Command, io: Io): void {
  command
    .exitOverride()
    .configureOutput({
      writeOut: (text) => io.print(text.trimEnd()),
      writeErr: (text) => io.say(text.trimEnd()),
    })
    .configureHelp({
      visibleOptions(of) {
        return commonLast(Help.prototype.visibleOptions.call(this, of));
      },
      // An empty default says nothing.
      optionDescription(option) {
        return Help.prototype.optionDescription.call(this, option).replace(/ \(default: (?:""|\[\])\)$/, "");
      },
    });
  for (const inner of command.commands) quietly(inner, io);
}

/** What is the same for every command stands last, in one order. */
function commonLast(options: readonly Option[]): Option[] {
  const rank = ({ long }: Option): number => common.indexOf(long ?? "");
  return options.toSorted((a, b) => rank(a) - rank(b));
}

function packageVersion(): string {
  const text = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}

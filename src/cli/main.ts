#!/usr/bin/env node
import { processIo } from "./io.ts";
import { runProgram } from "./program.ts";
import { redactFor } from "./redact.ts";

// A reader that has seen enough (`inbox quarantine list | head`) closes the pipe: that is no failure.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(0);
  throw error;
});

process.exitCode = await runProgram(process.argv.slice(2), processIo(redactFor(process.env)));

import { spawn } from "node:child_process";
import { join } from "node:path";
import { bundle } from "../scripts/bundle.ts";

// The benchmark runs as JavaScript, as the published package does: the loader that runs TypeScript adds a call to every
// function it makes, which cost the inbox a third of its own time.
const child = spawn(
  process.execPath,
  [await bundle(join(import.meta.dirname, "main.ts")), ...process.argv.slice(2)],
  {
    stdio: "inherit",
  },
);
child.on("exit", (code, signal) => {
  process.exitCode = code ?? (signal === null ? 1 : 128);
});
process.on("SIGINT", () => child.kill("SIGINT"));

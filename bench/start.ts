import { spawn } from "node:child_process";
import { join } from "node:path";
import { bundle } from "../scripts/bundle.ts";

// What is measured runs as JavaScript, as the published package does: the loader that runs TypeScript adds a call to
// every function it makes, which cost the inbox a third of its own time.
const [first, ...others] = process.argv.slice(2);
if (first === "sources") {
  // Here only its consumers are measured, each a process of its own.
  const { benchSources } = await import("./sources/main.ts");
  process.exitCode = await benchSources(others);
} else if (first === "relay") {
  const { relayBench } = await import("./relay/main.ts");
  await relayBench(others);
} else {
  const child = spawn(
    process.execPath,
    [await bundle(join(import.meta.dirname, "main.ts")), ...process.argv.slice(2)],
    { stdio: "inherit" },
  );
  child.on("exit", (code, signal) => {
    process.exitCode = code ?? (signal === null ? 1 : 128);
  });
  process.on("SIGINT", () => child.kill("SIGINT"));
}

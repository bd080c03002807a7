import type { SqsFacts } from "./facts.ts";
import { speaksSqs, sqsAt } from "./sqs-address.ts";
import type { Way } from "./way.ts";

const host = "127.0.0.1";

/** The SQS server that npm ships: in memory only, so what it holds is gone when it ends. */
export const fauxqs: Way<SqsFacts> = {
  name: "fauxqs",
  ports: ["http"],
  async open() {
    return library() === undefined ? "fauxqs is not installed (npm ci installs it)" : undefined;
  },
  plan({ ports }) {
    const port = ports["http"]!;
    // Its own command listens on all interfaces.
    const script = `
      import { buildApp } from ${JSON.stringify(library())};
      await buildApp({ logger: false }).listen({ host: "${host}", port: ${port} });
      process.on("SIGTERM", () => process.exit(0));`;
    return {
      facts: sqsAt(host, port),
      commands: [
        { name: "fauxqs", program: process.execPath, args: ["--input-type=module", "--eval", script] },
      ],
      check: () => speaksSqs(sqsAt(host, port)),
      startTimeoutMs: 20_000,
    };
  },
};

function library(): string | undefined {
  try {
    return import.meta.resolve("fauxqs");
  } catch {
    return undefined;
  }
}

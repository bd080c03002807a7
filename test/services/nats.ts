import { mkdirSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import type { NatsFacts } from "./facts.ts";
import { fromCompose } from "./compose.ts";
import { installDebian } from "./debian.ts";
import { programPath } from "./processes.ts";
import type { Kind, Way } from "./way.ts";

const host = "127.0.0.1";

const factsOf = (port: number): NatsFacts => ({ host, port, url: `nats://${host}:${port}` });

const packaged: Way<NatsFacts> = {
  name: "nats-server",
  ports: ["client"],
  async open(help) {
    return programPath("nats-server") === undefined ? installDebian("nats-server", help) : undefined;
  },
  plan({ directory, ports }) {
    const port = ports["client"]!;
    const config = join(directory, "nats.conf");
    return {
      facts: factsOf(port),
      commands: [
        { name: "nats-server", program: programPath("nats-server") ?? "nats-server", args: ["-c", config] },
      ],
      async setUp() {
        mkdirSync(join(directory, "jetstream"));
        writeFileSync(
          config,
          [
            `listen: "${host}:${port}"`,
            `jetstream { store_dir: "${join(directory, "jetstream")}", max_mem: 256MB, max_file: 4GB }`,
            "",
          ].join("\n"),
        );
      },
      check: () => speaksNats(host, port),
      startTimeoutMs: 20_000,
    };
  },
};

const contained = fromCompose<NatsFacts>({
  service: "nats",
  ports: { client: "NATS_PORT" },
  facts: (ports) => factsOf(ports["client"]!),
  check: ({ port }) => speaksNats(host, port),
});

export const nats: Kind<NatsFacts> = {
  given() {
    const url = process.env["NATS_URL"];
    if (url === undefined || url === "") return undefined;
    const { hostname, port } = new URL(url);
    return { host: hostname, port: Number(port || "4222"), url };
  },
  async usual() {
    return speaksNats(host, 4222).then(
      () => factsOf(4222),
      () => undefined,
    );
  },
  ways: [contained, packaged],
};

/** A NATS server speaks first, and says whether it has JetStream and lets anybody in. */
export async function speaksNats(at: string, port: number): Promise<void> {
  const info = await new Promise<string>((resolve, reject) => {
    const socket = connect({ host: at, port, timeout: 2_000 });
    let text = "";
    socket.on("data", (bytes: Buffer) => {
      text += bytes.toString("latin1");
      if (text.length > 65_536 || (text.length > 5 && !text.startsWith("INFO ")))
        socket.destroy(new Error("What listens there is no NATS server."));
      else if (text.includes("\r\n")) {
        resolve(text);
        socket.destroy();
      }
    });
    socket.once("timeout", () => socket.destroy(new Error("It does not answer.")));
    socket.once("error", reject);
    socket.once("close", () => reject(new Error("It closed the connection.")));
  });
  const { jetstream, auth_required } = JSON.parse(info.slice(5, info.indexOf("\r\n"))) as {
    jetstream?: boolean;
    auth_required?: boolean;
  };
  if (jetstream !== true) throw new Error("The NATS server runs without JetStream.");
  if (auth_required === true) throw new Error("The NATS server asks for credentials.");
}

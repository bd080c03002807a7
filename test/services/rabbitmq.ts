import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { connect } from "amqplib";
import type { RabbitmqFacts } from "./facts.ts";
import { fromCompose } from "./compose.ts";
import { installDebian } from "./debian.ts";
import { programPath } from "./processes.ts";
import type { Kind, Way } from "./way.ts";

const host = "127.0.0.1";

const factsOf = (port: number): RabbitmqFacts => ({ host, port, url: `amqp://guest:guest@${host}:${port}` });

// Not the wrapper on the PATH, which changes to an account of its own.
const program = (): string | undefined => programPath("rabbitmq-server", "/usr/lib/rabbitmq/bin");
const direct = (): string => {
  const path = programPath("rabbitmq-server-wait", "/usr/lib/rabbitmq/bin");
  return path === undefined
    ? (program() ?? "rabbitmq-server")
    : path.replace(/rabbitmq-server-wait$/, "rabbitmq-server");
};

// How late the counts of quorum queues may be, in milliseconds.
const advanced = "[{rabbit, [{quorum_tick_interval, 100}]}].\n";

const packaged: Way<RabbitmqFacts> = {
  name: "rabbitmq-server",
  ports: ["amqp", "erlang", "epmd", "management"],
  async open(help) {
    return program() === undefined ? installDebian("rabbitmq-server", help) : undefined;
  },
  plan({ directory, ports }) {
    const port = ports["amqp"]!;
    const at = (name: string): string => join(directory, name);
    // An epmd of its own: the one that Erlang would start by itself is a daemon that stays behind.
    const epmd = { ERL_EPMD_PORT: String(ports["epmd"]), ERL_EPMD_ADDRESS: host };
    return {
      facts: { ...factsOf(port), management: `http://${host}:${ports["management"]}` },
      commands: [
        {
          name: "epmd",
          program: programPath("epmd", "/usr/lib/erlang/bin") ?? "epmd",
          args: ["-port", String(ports["epmd"]), "-address", host],
        },
        {
          name: "rabbitmq",
          program: direct(),
          args: [],
          env: {
            ...epmd,
            HOME: directory,
            RABBITMQ_NODENAME: `inbox${port}@localhost`,
            RABBITMQ_NODE_IP_ADDRESS: host,
            RABBITMQ_NODE_PORT: String(port),
            RABBITMQ_DIST_PORT: String(ports["erlang"]),
            RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: "-kernel inet_dist_use_interface {127,0,0,1} +sbwt none",
            RABBITMQ_CONF_ENV_FILE: at("none.conf"),
            RABBITMQ_CONFIG_FILE: at("rabbitmq.conf"),
            RABBITMQ_ADVANCED_CONFIG_FILE: at("advanced.config"),
            RABBITMQ_ENABLED_PLUGINS_FILE: at("enabled_plugins"),
            RABBITMQ_MNESIA_BASE: at("data"),
            RABBITMQ_LOG_BASE: at("logs"),
            RABBITMQ_PID_FILE: at("rabbitmq.pid"),
          },
        },
      ],
      async setUp() {
        for (const name of ["data", "logs"]) mkdirSync(at(name));
        writeFileSync(at("enabled_plugins"), "[rabbitmq_management].\n");
        // Free disk is not what these tests are about, and a broker that finds too little blocks its publishers.
        const settings = ["log.console = true", "log.file = false", "disk_free_limit.absolute = 50MB"];
        settings.push(`management.tcp.ip = ${host}`, `management.tcp.port = ${ports["management"]}`);
        writeFileSync(at("rabbitmq.conf"), [...settings, ""].join("\n"));
        writeFileSync(at("advanced.config"), advanced);
      },
      check: () => speaksAmqp(factsOf(port).url),
      startTimeoutMs: 90_000,
    };
  },
};

const contained = fromCompose<RabbitmqFacts>({
  service: "rabbitmq",
  ports: { amqp: "RABBITMQ_PORT", management: "RABBITMQ_MANAGEMENT_PORT" },
  facts: ({ amqp, management }) => ({ ...factsOf(amqp!), management: `http://${host}:${management}` }),
  check: ({ url }) => speaksAmqp(url),
  files: { "/etc/rabbitmq/advanced.config": advanced },
});

export const rabbitmq: Kind<RabbitmqFacts> = {
  given() {
    const url = process.env["AMQP_URL"];
    if (url === undefined || url === "") return undefined;
    const { hostname, port } = new URL(url);
    return { host: hostname, port: Number(port || "5672"), url };
  },
  async usual() {
    const facts = factsOf(5672);
    return speaksAmqp(facts.url).then(
      () => facts,
      () => undefined,
    );
  },
  ways: [contained, packaged],
};

/** Whether one can log in and open a channel. */
export async function speaksAmqp(url: string): Promise<void> {
  const connection = await connect(url, { timeout: 3_000 });
  connection.on("error", () => undefined);
  try {
    await connection.createChannel();
  } finally {
    await connection.close().catch(() => undefined);
  }
}

import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { fromCompose } from "./compose.ts";
import type { KafkaFacts } from "./facts.ts";
import { speaksKafka } from "./kafka-address.ts";
import { javaPrograms } from "./maven.ts";
import type { Command, Kind, Place, Plan, Way } from "./way.ts";

const run = promisify(execFile);
const host = "127.0.0.1";
const programs = javaPrograms("kafka");

/** The real broker from Maven Central, in KRaft mode: each node is broker and controller. */
function fromMaven(nodes: number): Way<KafkaFacts> {
  const ids = Array.from({ length: nodes }, (_, i) => i + 1);
  return {
    name: nodes === 1 ? "Kafka of Maven Central" : `Kafka of Maven Central, ${nodes} nodes`,
    ports: [
      ...ids.flatMap((id) => [`client${id}`, `controller${id}`]),
      ...(nodes === 1 ? ["proxied", "advertised"] : []),
    ],
    open: programs.open,
    plan: (place) => planOf(place, ids),
  };
}

function planOf({ directory, ports }: Place, ids: readonly number[]): Plan<KafkaFacts> {
  const port = (name: string): number => ports[name]!;
  const brokers = ids.map((id) => `${host}:${port(`client${id}`)}`);
  const alone = ids.length === 1;
  const proxied = {
    target: { host, port: port("proxied") },
    advertised: { host, port: port("advertised") },
  };
  const settingsPath = (id: number): string => join(directory, `node-${id}.properties`);
  const dataPath = (id: number): string => join(directory, `node-${id}`);
  const settings = (id: number): string => {
    const listeners = [`CLIENT://${host}:${port(`client${id}`)}`];
    const advertised = [...listeners];
    if (alone) {
      listeners.push(`PROXIED://${host}:${proxied.target.port}`);
      advertised.push(`PROXIED://${host}:${proxied.advertised.port}`);
    }
    listeners.push(`CONTROLLER://${host}:${port(`controller${id}`)}`);
    const replicas = Math.min(3, ids.length);
    return properties({
      "process.roles": "broker,controller",
      "node.id": id,
      "controller.quorum.voters": ids.map((one) => `${one}@${host}:${port(`controller${one}`)}`).join(","),
      listeners: listeners.join(","),
      "advertised.listeners": advertised.join(","),
      "listener.security.protocol.map": "CLIENT:PLAINTEXT,PROXIED:PLAINTEXT,CONTROLLER:PLAINTEXT",
      "inter.broker.listener.name": "CLIENT",
      "controller.listener.names": "CONTROLLER",
      "log.dirs": dataPath(id),
      "auto.create.topics.enable": false,
      "default.replication.factor": replicas,
      "min.insync.replicas": Math.max(1, replicas - 1),
      "offsets.topic.replication.factor": replicas,
      "offsets.topic.num.partitions": 4,
      "transaction.state.log.replication.factor": replicas,
      "transaction.state.log.min.isr": Math.max(1, replicas - 1),
      "transaction.state.log.num.partitions": 4,
      "share.coordinator.state.topic.replication.factor": replicas,
      "share.coordinator.state.topic.min.isr": Math.max(1, replicas - 1),
      // A group of the tests forms at once, and one of its members may be given up soon.
      "group.initial.rebalance.delay.ms": 0,
      "group.min.session.timeout.ms": 1_000,
      // The cleaner's buffer alone would take a third of the heap.
      "log.cleaner.dedupe.buffer.size": 8 * 1024 * 1024,
      "log.cleaner.threads": 1,
      "num.network.threads": 2,
      "num.io.threads": 4,
      "controlled.shutdown.enable": !alone,
      // A node that was killed is given up soon.
      "broker.heartbeat.interval.ms": 500,
      "broker.session.timeout.ms": alone ? 9_000 : 3_000,
    });
  };
  return {
    facts: { brokers, real: true, ...(alone ? { proxied } : {}) },
    commands: ids.map((id) => ({
      ...java(directory, "kafka.Kafka", [settingsPath(id)]),
      name: `kafka-${id}`,
    })),
    async setUp() {
      writeFileSync(join(directory, "log4j2.properties"), logging);
      // One that begins with a dash would be taken for an option.
      const bytes = randomBytes(16);
      bytes[0]! &= 0x7f;
      const cluster = bytes.toString("base64url");
      await Promise.all(
        ids.map(async (id) => {
          mkdirSync(dataPath(id));
          writeFileSync(settingsPath(id), settings(id));
          const args = ["format", "--cluster-id", cluster, "--config", settingsPath(id)];
          const { program, args: all, env } = java(directory, "kafka.tools.StorageTool", args);
          await run(program, [...all], { cwd: directory, env: { ...process.env, ...env }, timeout: 60_000 });
        }),
      );
    },
    check: () => speaksKafka(brokers),
    startTimeoutMs: 120_000,
    stopTimeoutMs: 15_000,
  };
}

const java = (directory: string, main: string, args: readonly string[]): Command => ({
  name: "java",
  program: "java",
  args: [
    ...[
      "-Xms96m",
      "-Xmx384m",
      "-XX:+UseSerialGC",
      "-XX:TieredStopAtLevel=1",
      "-XX:MaxDirectMemorySize=128m",
      "-Djava.awt.headless=true",
    ],
    `-Dlog4j2.configurationFile=${join(directory, "log4j2.properties")}`,
    ...["-cp", programs.classPath, main, ...args],
  ],
});

const properties = (values: Readonly<Record<string, string | number | boolean>>): string =>
  Object.entries(values)
    .map(([name, value]) => `${name}=${value}\n`)
    .join("");

const logging = properties({
  "rootLogger.level": "INFO",
  "rootLogger.appenderRef.out.ref": "out",
  "appender.out.type": "Console",
  "appender.out.name": "out",
  "appender.out.layout.type": "PatternLayout",
  "appender.out.layout.pattern": "%d %p %c{1} %m%n",
  "logger.config.name": "org.apache.kafka.common.config",
  "logger.config.level": "WARN",
});

const given = (variable: string): KafkaFacts | undefined => {
  const list = (process.env[variable] ?? "").split(",").map((text) => text.trim());
  const brokers = list.filter((text) => text !== "");
  return brokers.length === 0 ? undefined : { brokers, real: true };
};

const contained = fromCompose<KafkaFacts>({
  service: "kafka",
  ports: { client: "KAFKA_PORT", proxied: "KAFKA_PROXIED_PORT", advertised: "KAFKA_ADVERTISED_PORT" },
  facts: ({ client, proxied, advertised }) => ({
    brokers: [`${host}:${client}`],
    real: true,
    proxied: { target: { host, port: proxied! }, advertised: { host, port: advertised! } },
  }),
  check: ({ brokers }) => speaksKafka(brokers),
});

export const kafka: Kind<KafkaFacts> = {
  given: () => given("KAFKA_BROKERS"),
  async usual() {
    const brokers = [`${host}:9092`];
    return speaksKafka(brokers).then(
      () => ({ brokers, real: true }),
      () => undefined,
    );
  },
  ways: [contained, fromMaven(1)],
};

export const kafkaCluster: Kind<KafkaFacts> = {
  given: () => given("KAFKA_CLUSTER_BROKERS"),
  ways: [fromMaven(3)],
};

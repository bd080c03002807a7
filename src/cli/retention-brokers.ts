import { InboxError } from "../errors.ts";
import { askJetStream, type JetStreamManagerLike } from "../retention/ask-jetstream.ts";
import { askKafka, type KafkaAdminLike } from "../retention/ask-kafka.ts";
import { askRabbitmq } from "../retention/ask-rabbitmq.ts";
import { askSqs } from "../retention/ask-sqs.ts";
import type { BrokerFacts } from "../retention/facts.ts";
import type { Io } from "./io.ts";
import { UsageError } from "./usage-error.ts";

export interface BrokerOptions {
  readonly sqs: readonly string[];
  readonly jetstream: readonly string[];
  readonly rabbitmq: readonly string[];
  readonly rabbitmqVhost: string;
  readonly kafka: readonly string[];
  readonly brokerRetention?: number;
  readonly logRetention?: number;
}

/** Asks each broker that a command names, with the clients that are installed. Addresses come from the environment. */
export async function askBrokers(io: Io, options: BrokerOptions): Promise<readonly BrokerFacts[]> {
  const { brokerRetention, logRetention } = options;
  const facts: BrokerFacts[] = [];
  if (brokerRetention !== undefined) {
    facts.push({ name: "queue", kind: "queue", retentionMs: brokerRetention });
  }
  if (logRetention !== undefined) facts.push({ name: "log", kind: "log", retentionMs: logRetention });
  if (options.sqs.length > 0) facts.push(...(await askAllSqs(options.sqs)));
  if (options.jetstream.length > 0) {
    facts.push(...(await askAllStreams(options.jetstream, variable(io, "NATS_URL"))));
  }
  if (options.rabbitmq.length > 0) {
    const management = managementAt(variable(io, "RABBITMQ_MANAGEMENT_URL"));
    for (const queue of options.rabbitmq) {
      facts.push(await askRabbitmq({ ...management, vhost: options.rabbitmqVhost }, queue));
    }
  }
  if (options.kafka.length > 0) {
    facts.push(...(await askAllTopics(options.kafka, variable(io, "KAFKA_BROKERS"))));
  }
  return facts;
}

function variable(io: Io, name: string): string {
  const value = io.env[name];
  if (value === undefined || value === "")
    throw new UsageError(`The environment variable ${name} is not set.`);
  return value;
}

function managementAt(text: string): { url: string; username?: string; password?: string } {
  if (!/^https?:/i.test(text) || !URL.canParse(text))
    throw new UsageError("RABBITMQ_MANAGEMENT_URL is no URL. It looks like http://host:15672.");
  const url = new URL(text);
  const [username, password] = [decodeURIComponent(url.username), decodeURIComponent(url.password)];
  url.username = "";
  url.password = "";
  return { url: url.href, ...(username === "" ? {} : { username, password }) };
}

/** Imports what the user has installed. The name is in a variable, so that none of them is needed to compile. */
async function client<Module>(name: string): Promise<Module> {
  try {
    return (await import(name)) as Module;
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== "ERR_MODULE_NOT_FOUND") throw cause;
    throw new InboxError(
      "missing-package",
      `The package "${name}" is not installed. Run: npm install ${name}`,
      {
        cause,
      },
    );
  }
}

interface SqsModule {
  readonly SQSClient: new (config: object) => { send(command: never): Promise<unknown>; destroy(): void };
}

async function askAllSqs(urls: readonly string[]): Promise<readonly BrokerFacts[]> {
  for (const url of urls) if (!URL.canParse(url)) throw new UsageError("--sqs takes the URL of a queue.");
  const { SQSClient } = await client<SqsModule>("@aws-sdk/client-sqs");
  const sqs = new SQSClient({ maxAttempts: 2 });
  try {
    return await Promise.all(urls.map((url) => askSqs(sqs, url)));
  } finally {
    sqs.destroy();
  }
}

interface NatsModule {
  connect(options: object): Promise<{ close(): Promise<void> }>;
}

interface JetStreamModule {
  jetstreamManager(connection: object): Promise<JetStreamManagerLike>;
}

async function askAllStreams(names: readonly string[], servers: string): Promise<readonly BrokerFacts[]> {
  const { connect } = await client<NatsModule>("@nats-io/transport-node");
  const { jetstreamManager } = await client<JetStreamModule>("@nats-io/jetstream");
  const connection = await connect({ servers, maxReconnectAttempts: 0 });
  try {
    const manager = await jetstreamManager(connection);
    return await Promise.all(
      names.map((name) => {
        const [stream = "", consumer] = name.split("/");
        return askJetStream(manager, stream, consumer);
      }),
    );
  } finally {
    await connection.close();
  }
}

interface KafkajsModule {
  readonly default: {
    readonly Kafka: new (config: object) => {
      admin(): KafkaAdminLike & { connect(): Promise<void>; disconnect(): Promise<void> };
    };
    readonly logLevel: { readonly NOTHING: number };
  };
}

async function askAllTopics(topics: readonly string[], brokers: string): Promise<readonly BrokerFacts[]> {
  const { Kafka, logLevel } = (await client<KafkajsModule>("kafkajs")).default;
  const kafka = new Kafka({
    clientId: "inbox",
    brokers: brokers.split(","),
    logLevel: logLevel.NOTHING,
    retry: { retries: 2 },
  });
  const admin = kafka.admin();
  await admin.connect();
  try {
    return await Promise.all(topics.map((topic) => askKafka(admin, topic)));
  } finally {
    await admin.disconnect();
  }
}

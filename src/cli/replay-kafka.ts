import { InboxError } from "../errors.ts";
import { replayKafka, type KafkaOffsetsAdmin } from "../replay/kafka-range.ts";
import type { ReplaySource } from "../replay/replay-source.ts";
import type { FormatChoice } from "../message/formats/formats.ts";
import { kafkajs } from "../sources/kafka/kafkajs.ts";
import type { KafkajsKafka } from "../sources/kafka/kafkajs-shapes.ts";
import type { Io } from "./io.ts";
import { UsageError } from "./usage-error.ts";

/** What of Kafka is replayed. */
export interface ReplayKafkaFlags {
  readonly topics: readonly string[];
  readonly groupId: string;
  readonly from: Date | undefined;
  readonly identity: FormatChoice;
  readonly tenant: string | undefined;
}

/** A source, and how to end what was opened for it. */
export interface OpenedSource {
  readonly source: ReplaySource;
  close(): Promise<void>;
}

interface KafkajsModule {
  readonly default: {
    readonly Kafka: new (config: object) => {
      admin(): KafkaOffsetsAdmin & { connect(): Promise<void>; disconnect(): Promise<void> };
    };
    readonly logLevel: { readonly NOTHING: number };
  };
}

/** Topics of the brokers in KAFKA_BROKERS, read with kafkajs. Throws `missing-package` where that is not installed. */
export async function openReplayKafka(io: Io, flags: ReplayKafkaFlags): Promise<OpenedSource> {
  const brokers = io.env["KAFKA_BROKERS"];
  if (brokers === undefined || brokers === "")
    throw new UsageError("The environment variable KAFKA_BROKERS is not set.");
  const { Kafka, logLevel } = (await importKafkajs()).default;
  const config = { clientId: "inbox-replay", brokers: brokers.split(","), logLevel: logLevel.NOTHING };
  const admin = new Kafka(config).admin();
  try {
    await admin.connect();
  } catch (cause) {
    await admin.disconnect().catch(() => undefined);
    const text = `No Kafka broker can be used: ${(cause as Error).message}`;
    throw new InboxError("source-failed", text, { cause });
  }
  const client = kafkajs(Kafka as unknown as KafkajsKafka, config);
  return { source: replayKafka({ ...flags, client, admin }), close: () => admin.disconnect() };
}

/** The name is in a variable, so that the package is not needed to compile. */
async function importKafkajs(): Promise<KafkajsModule> {
  const name = "kafkajs";
  try {
    return (await import(name)) as KafkajsModule;
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== "ERR_MODULE_NOT_FOUND") throw cause;
    const text = 'The package "kafkajs" is not installed. Run: npm install kafkajs';
    throw new InboxError("missing-package", text, { cause });
  }
}

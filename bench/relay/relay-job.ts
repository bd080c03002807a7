import { channel } from "node:diagnostics_channel";
import { postgres } from "../../src/index.ts";
import {
  createRelay,
  httpDestination,
  inboxDestination,
  sent,
  type Destination,
} from "../../src/relay/relay.ts";
import {
  confluentProducer,
  type ConfluentProducerModule,
} from "../../src/relay/destinations/kafka/confluent.ts";
import { kafkaDestination } from "../../src/relay/destinations/kafka/kafka.ts";
import { loadExtraClient } from "../../test/services/kafka-clients.ts";
import { benchPool } from "../setup.ts";
import { parentOf, processorMs } from "./cpu.ts";
import { destination, jobFrom, type RelayJob, type RelayTimes } from "./job.ts";

// One process: a relay that sends what waits, until so many effects are committed as sent.

const job = jobFrom(process.argv);
const pool = benchPool(job.url, job.schema, 8, true);
const { rows } = await pool.query<{ pid: number }>("select pg_backend_pid() as pid");
const server = parentOf(rows[0]!.pid);

async function destinationOf({ kind, target, url, topic }: RelayJob): Promise<Destination> {
  switch (kind) {
    case "function":
      return { deliver: async () => sent() };
    case "batch":
      return { deliverBatch: async (effects) => effects.map(() => sent()) };
    case "inbox":
      return inboxDestination({
        store: postgres(benchPool(url, target, 4, true), { schema: target }),
        consumer: "ledger",
      });
    case "http":
      return httpDestination({ url: target, concurrency: 32, allowPrivateAddresses: true });
    case "kafka": {
      const module = (await loadExtraClient("confluent")) as ConfluentProducerModule;
      const producer = confluentProducer(module, { "bootstrap.servers": target });
      return kafkaDestination({ producer, topic: topic! });
    }
  }
}

const relay = createRelay({
  store: postgres(pool, { schema: job.schema }),
  destinations: { [destination]: await destinationOf(job) },
});
let settled = 0;
let done: () => void = () => undefined;
const all = new Promise<void>((resolve) => (done = resolve));
channel("transactional-inbox:relay:settled").subscribe((message) => {
  settled += (message as { size: number }).size;
  if (settled >= job.effects) done();
});
const before = processorMs(server);
const own = process.cpuUsage();
const started = performance.now();
await relay.start();
await all;
const ms = performance.now() - started;
const { user, system } = process.cpuUsage(own);
const times: RelayTimes = {
  ms: (ms * job.effects) / settled,
  relayMs: (((user + system) / 1_000) * job.effects) / settled,
  databaseMs: ((processorMs(server) - before) * job.effects) / settled,
};
process.stdout.write(JSON.stringify(times));
await relay.stop();
process.exit(0);

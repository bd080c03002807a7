import { randomUUID } from "node:crypto";
import { loadExtraClient } from "../../test/services/kafka-clients.ts";
import { byHand } from "./account.ts";
import { stopwatch, type Job, type Result } from "./job.ts";

type Callback<T> = (error: Error | null, result: T) => void;

/** The part of librdkafka's consumer that is used here. */
interface Consumer {
  connect(options: object, done: Callback<unknown>): void;
  subscribe(topics: readonly string[]): void;
  consume(most: number, done: Callback<readonly { readonly value: Buffer | null }[]>): void;
  setDefaultConsumeTimeout(timeoutMs: number): void;
  setDefaultIsTimeoutOnlyForFirstMessage(only: boolean): void;
  disconnect(done: Callback<unknown>): void;
}

interface Module {
  readonly KafkaConsumer: new (config: object, topic: object) => Consumer;
}

/** Polls as many as may be in hand, handles them side by side, polls again; offsets are committed by the client. */
export async function measureConfluent(job: Job): Promise<Result> {
  const { KafkaConsumer } = (await loadExtraClient("confluent")) as Module;
  const watch = stopwatch(job.load.deliveries);
  const { handle, close } = byHand(job);
  const consumer = new KafkaConsumer(
    {
      "bootstrap.servers": job.address,
      "group.id": `bench-${randomUUID()}`,
    },
    { "auto.offset.reset": "earliest" },
  );
  await call((done) => consumer.connect({}, done));
  consumer.setDefaultConsumeTimeout(200);
  consumer.setDefaultIsTimeoutOnlyForFirstMessage(true);
  consumer.subscribe([job.place]);
  let over = false;
  const polling = (async () => {
    while (!over) {
      const messages = await call<readonly { readonly value: Buffer | null }[]>((done) =>
        consumer.consume(job.inHand, done),
      );
      if (messages.length === 0) continue;
      watch.delivered();
      await Promise.all(messages.map(({ value }) => handle(value as Buffer)));
      watch.acknowledged(messages.length);
    }
  })();
  const result = await Promise.race([watch.finished, polling.then(() => watch.finished)]);
  over = true;
  await polling;
  await call((done) => consumer.disconnect(done));
  await close();
  return result;
}

const call = <T>(start: (done: Callback<T>) => void): Promise<T> =>
  new Promise((resolve, reject) => start((error, result) => (error ? reject(error) : resolve(result))));

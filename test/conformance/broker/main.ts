// The reference broker, a process of its own: `main.mjs LOG PORT LEASE_MS`. Tells its port on its channel to the parent.
import { createServer, type AddressInfo } from "node:net";
import { eachLine, type FromBroker, type ToBroker } from "./protocol.ts";
import { openQueue, type Consumer } from "./queue.ts";

const [log, port, leaseMs] = process.argv.slice(2);
const queue = openQueue(log!, Number(leaseMs));

const server = createServer((socket) => {
  let consumer: Consumer | undefined;
  const tell = (message: FromBroker): void => void socket.write(`${JSON.stringify(message)}\n`);
  socket.setNoDelay(true);
  socket.setEncoding("utf8");
  socket.on("error", () => undefined);
  socket.on("close", () => {
    if (consumer !== undefined) queue.leave(consumer);
  });
  const nobody: Consumer = { prefetch: 0, hand: () => undefined };
  socket.on(
    "data",
    eachLine((value) => {
      const message = value as ToBroker;
      if ("consume" in message) {
        const { prefetch } = message.consume;
        consumer ??= { prefetch, hand: (deliveries) => tell({ deliveries }) };
        // Another number from the same consumer is the one that counts from now on.
        consumer.prefetch = prefetch;
        return queue.join(consumer);
      }
      if ("extend" in message) return queue.extend(consumer ?? nobody, message.extend);
      if ("publish" in message) queue.publish(message.publish);
      if ("settle" in message) queue.settle(consumer ?? nobody, message.settle);
      tell({ answer: message.ask, counts: queue.counts() });
    }),
  );
});
server.listen(Number(port), "127.0.0.1", () =>
  process.send?.({ port: (server.address() as AddressInfo).port }),
);
process.once("disconnect", () => process.exit());

import { connect } from "node:net";
import { eachLine, type Counts, type FromBroker, type Handed, type ToBroker } from "./protocol.ts";

type Question = ToBroker extends infer Each
  ? Each extends { ask: number }
    ? Omit<Each, "ask">
    : never
  : never;

/** One connection to the reference broker. */
export interface Connection {
  /** Rejects when the connection breaks before the answer. */
  ask(question: Question): Promise<Counts>;
  tell(message: Extract<ToBroker, { consume: unknown } | { extend: unknown }>): void;
  end(): void;
}

/** Connects; rejects if nobody listens. `lost` is called once when the connection ends, by whomever. */
export async function openConnection(
  port: number,
  on: { deliveries?: (list: readonly Handed[]) => void; lost?: () => void } = {},
): Promise<Connection> {
  const socket = connect(port, "127.0.0.1");
  const waiting = new Map<number, { resolve: (counts: Counts) => void; reject: (error: Error) => void }>();
  let next = 1;
  let gone = false;
  socket.setNoDelay(true);
  socket.setEncoding("utf8");
  await new Promise<void>((resolve, reject) => {
    socket.once("connect", resolve);
    socket.once("error", reject);
  });
  socket.on("error", () => undefined);
  socket.on("close", () => {
    gone = true;
    for (const { reject } of waiting.values()) reject(new Error("The connection to the broker is lost."));
    waiting.clear();
    on.lost?.();
  });
  socket.on(
    "data",
    eachLine((value) => {
      const message = value as FromBroker;
      if ("deliveries" in message) return on.deliveries?.(message.deliveries);
      waiting.get(message.answer)?.resolve(message.counts);
      waiting.delete(message.answer);
    }),
  );
  const send = (message: ToBroker): void => void socket.write(`${JSON.stringify(message)}\n`);
  return {
    ask: (question) =>
      new Promise((resolve, reject) => {
        if (gone) return reject(new Error("The connection to the broker is lost."));
        const ask = next++;
        waiting.set(ask, { resolve, reject });
        send({ ask, ...question });
      }),
    tell: send,
    end: () => void socket.destroy(),
  };
}

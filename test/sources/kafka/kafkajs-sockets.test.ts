import assert from "node:assert/strict";
import { once } from "node:events";
import net from "node:net";
import test from "node:test";
import { createKafkajsSockets } from "../../../src/sources/kafka/kafkajs-sockets.ts";
import type { KafkajsSocketFactory } from "../../../src/sources/kafka/kafkajs-shapes.ts";
import { onTestEnd, type Scope } from "../../support/cleanup.ts";

/** A server that keeps what it gets, and how to connect to it. */
async function listener(t: Scope): Promise<{
  readonly to: Parameters<KafkajsSocketFactory>[0];
  until(text: string): Promise<void>;
  got(): string;
}> {
  let got = "";
  const looks = new Set<() => void>();
  const server = net.createServer((socket) => {
    socket.on("error", () => undefined);
    socket.on("data", (chunk) => {
      got += chunk.toString("latin1");
      for (const look of looks) look();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestEnd(t, () => void server.close());
  const { port } = server.address() as net.AddressInfo;
  return {
    to: { host: "127.0.0.1", port, ssl: undefined as never, onConnect: () => undefined },
    got: () => got,
    until: (text) =>
      new Promise((resolve) => {
        const look = (): void => {
          if (!got.endsWith(text)) return;
          looks.delete(look);
          resolve();
        };
        looks.add(look);
        look();
      }),
  };
}

/** As on the wire: the size, which request it is, and something to know it by. */
function request(key: number, name: string): Buffer {
  const body = Buffer.from(name);
  const head = Buffer.alloc(6);
  head.writeInt32BE(2 + body.length);
  head.writeInt16BE(key, 4);
  return Buffer.concat([head, body]);
}

const joinGroup = 11;
const offsetCommit = 8;

test("a request to join waits until partitions are handed back, and a commit passes by it", async (t) => {
  const server = await listener(t);
  let handedBack = (): void => undefined;
  const back = new Promise<void>((resolve) => (handedBack = resolve));
  let asked = 0;
  const sockets = createKafkajsSockets(() => {
    asked++;
    return back;
  });
  onTestEnd(t, () => sockets.close());
  const socket = sockets.factory(server.to);
  socket.on("error", () => undefined);
  await once(socket, "connect");
  socket.write(request(12, "beat"));
  socket.write(request(joinGroup, "join"));
  socket.write(request(offsetCommit, "commit"));
  await server.until("commit");
  assert.ok(!server.got().includes("join"), server.got());
  assert.equal(asked, 1);
  handedBack();
  await server.until("join");
});

test("a close ends the sockets that the client forgot, writes nothing to them any more, and lets none be made", async (t) => {
  const server = await listener(t);
  let handedBack = (): void => undefined;
  const back = new Promise<void>((resolve) => (handedBack = resolve));
  const sockets = createKafkajsSockets(() => back);
  const socket = sockets.factory(server.to);
  await once(socket, "connect");
  socket.write(request(joinGroup, "join"));
  const failed = new Promise<Error>((resolve) => socket.once("error", resolve));
  const ended = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  sockets.close();
  assert.match((await failed).message, /closed/);
  await ended;
  handedBack();
  await back;
  assert.throws(() => sockets.factory(server.to), /closed/);
  assert.equal(server.got(), "");
});

test("a socket of the user's own making is used", async (t) => {
  const server = await listener(t);
  const made: net.Socket[] = [];
  const sockets = createKafkajsSockets(
    () => Promise.resolve(),
    ({ host, port, onConnect }) => {
      made.push(net.connect({ host, port }, onConnect));
      return made[0]!;
    },
  );
  onTestEnd(t, () => sockets.close());
  const socket = sockets.factory(server.to);
  socket.on("error", () => undefined);
  assert.equal(socket, made[0]);
  socket.write(request(joinGroup, "join"));
  await server.until("join");
});

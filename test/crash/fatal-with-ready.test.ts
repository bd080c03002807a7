import assert from "node:assert/strict";
import { createServer, type AddressInfo, type Socket } from "node:net";
import { test } from "node:test";
import pg from "pg";
import { createInbox, postgres } from "../../src/index.ts";

const message = (type: string, body: Buffer): Buffer => {
  const length = Buffer.alloc(4);
  length.writeInt32BE(body.length + 4);
  return Buffer.concat([Buffer.from(type), length, body]);
};
const welcome = Buffer.concat([message("R", Buffer.alloc(4)), message("Z", Buffer.from("I"))]);
const goodbye = message("E", Buffer.from("SFATAL\0VFATAL\0C57P01\0Mterminating connection\0\0"));

test("survives a server that ends in the very moment it has let a connection in", async (t) => {
  // What a process reads that was busy while the server came up to "ready" and was killed: both in one piece.
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    socket.once("data", () => socket.end(Buffer.concat([welcome, goodbye])));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const pool = new pg.Pool({ host: "127.0.0.1", port, user: "somebody", max: 2 });
  t.after(() => pool.end());
  const inbox = createInbox({ store: postgres(pool), consumer: "accounting" });
  for (let i = 0; i < 3; i++) {
    const processed = await inbox.process(
      { producer: "payments", id: `m${i}`, payload: "1" },
      () => undefined,
    );
    assert.equal(processed.outcome, "failed");
    assert.equal(processed.settle, "retry");
  }
});

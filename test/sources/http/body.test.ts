import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import test from "node:test";
import { onTestEnd, type Scope } from "../../support/cleanup.ts";
import { httpCase, problemIn, type HttpCase } from "./support.ts";

const webhooks = (t: Scope, more: object = {}): Promise<HttpCase> =>
  httpCase(t, { identity: "standard-webhooks", verify: () => true, ...more });

/** Opens a connection and writes the beginning of a request. */
function begin(
  t: Scope,
  port: number,
  headers: string,
  body = "",
): { socket: Socket; answer: Promise<string> } {
  const socket = connect(port, "127.0.0.1");
  onTestEnd(t, () => void socket.destroy());
  socket.on("error", () => undefined);
  const answer = (async () => {
    let text = "";
    for await (const chunk of socket) {
      text += String(chunk);
      if (text.includes("\r\n\r\n")) return text;
    }
    return text;
  })();
  answer.catch(() => undefined);
  socket.write(`POST /in HTTP/1.1\r\nHost: x\r\nwebhook-id: 1\r\n${headers}\r\n\r\n${body}`);
  return { socket, answer };
}

const nothingClaimed = async ({ pool }: HttpCase): Promise<void> => {
  const { rows } = await pool.query("select count(*)::int as n from message");
  assert.deepEqual(rows, [{ n: 0 }]);
};

test("the limit holds while reading, whatever Content-Length says, and the sender sees why", async (t) => {
  const received = await webhooks(t, { maxBodyBytes: 1_000 });
  const { send, port } = received;
  assert.equal((await send({ headers: { "webhook-id": "0" }, body: "x".repeat(1_000) })).status, 204);
  await received.pool.query("delete from message");
  const answer = await send({ headers: { "webhook-id": "1" }, body: "x".repeat(1_001) });
  assert.deepEqual([answer.status, problemIn(answer).code], [413, "body-too-large"]);

  // Announced only: nothing is read.
  const announced = begin(t, port, "Content-Length: 100000000");
  assert.match(await announced.answer, /^HTTP\/1\.1 413 /);
  // Not announced: chunk after chunk, without an end.
  const endless = begin(t, port, "Transfer-Encoding: chunked");
  const timer = setInterval(() => endless.socket.write(`100\r\n${"x".repeat(256)}\r\n`), 1);
  onTestEnd(t, () => clearInterval(timer));
  const text = await endless.answer;
  assert.match(text, /^HTTP\/1\.1 413 /);
  assert.match(text, /connection: close/i);
  await nothingClaimed(received);
});

test("a body that does not arrive in time is 408, and nothing was claimed", async (t) => {
  const received = await webhooks(t, { bodyTimeoutMs: 50 });
  const { answer } = begin(t, received.port, "Content-Length: 10", "{");
  assert.match(await answer, /^HTTP\/1\.1 408 /);
  await nothingClaimed(received);
});

test("a sender that goes away in the middle of its body leaves nothing behind, and the server serves on", async (t) => {
  let verified = 0;
  const received = await webhooks(t, { verify: () => ++verified > 0 });
  const { socket } = begin(t, received.port, "Content-Length: 10", "{");
  await once(socket, "connect");
  socket.resetAndDestroy();
  assert.equal((await received.send({ headers: { "webhook-id": "2" }, body: "{}" })).status, 204);
  assert.equal(verified, 1, "a body that is not whole is not even verified");
  assert.deepEqual(await received.effects(), { "2": 1 });
});

test("an encoded body and another method are refused by name", async (t) => {
  const { send } = await webhooks(t);
  const encoded = await send({ headers: { "webhook-id": "1", "content-encoding": "gzip" }, body: "x" });
  assert.deepEqual([encoded.status, problemIn(encoded).code], [415, "encoding-not-supported"]);
  const got = await send({ method: "GET" });
  assert.deepEqual([got.status, got.headers["allow"]], [405, "POST"]);
});

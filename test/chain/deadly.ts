// Loaded before each program of the two services: makes it die where the test wants it to. The programs know nothing of it.
import { subscribe } from "node:diagnostics_channel";
import { ServerResponse } from "node:http";
import { Socket } from "node:net";
import "../../examples/two-services/play/with-parent.ts";
import type { Arm, Point } from "./points.ts";
import { statementReader, type ReadStatements } from "./statements.ts";

let armed: Arm | undefined;
process.on("message", (message: Arm | object) => {
  if ("arm" in message) armed = message;
});

function reached(point: Point): void {
  if (armed?.arm !== point) return;
  const { victim = process.pid } = armed;
  armed = undefined;
  process.kill(victim, "SIGKILL");
}

const channels: readonly (readonly [string, Point])[] = [
  ["transactional-inbox:relay:taken", "taken"],
  ["transactional-inbox:relay:sending", "sending"],
  ["transactional-inbox:relay:answered", "delivered"],
  ["transactional-inbox:relay:settled", "settled"],
  ["transactional-inbox:claimed", "claimed"],
  ["transactional-inbox:handled", "handled"],
  ["transactional-inbox:committed", "committed"],
  ["transactional-inbox:outcome", "outcome"],
  ["http.server.request.start", "request"],
  ["http.server.response.finish", "answered"],
];
for (const [channel, point] of channels) subscribe(channel, () => reached(point));

const end = ServerResponse.prototype.end;
ServerResponse.prototype.end = function (this: ServerResponse, ...parts: unknown[]) {
  reached("before answer");
  return end.apply(this, parts as never);
} as typeof end;

const readers = new WeakMap<Socket, ReadStatements>();
const write = Socket.prototype.write as (...parts: unknown[]) => boolean;
Socket.prototype.write = function (this: Socket, ...parts: unknown[]) {
  const [bytes] = parts;
  const read = readers.get(this) ?? statementReader();
  readers.set(this, read);
  const texts = bytes instanceof Uint8Array ? read(bytes) : [];
  const settles = texts.some((text) => text.includes("outbox_settle"));
  const commits = texts.some((text) => text.toLowerCase() === "commit");
  if (settles) reached("before settle");
  if (commits) reached("before commit");
  // The socket takes it at once, so it is with the kernel when this returns.
  const flushed = write.apply(this, parts);
  if (settles) reached("settle sent");
  if (commits) reached("commit sent");
  return flushed;
};

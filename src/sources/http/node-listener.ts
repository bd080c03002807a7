import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";

/** A listener for `node:http`, `node:https`, and frameworks that hand over their requests and responses. */
export type NodeListener = (request: IncomingMessage, response: ServerResponse) => void;

/** How long a sender that is refused in the middle of its body may take to read the answer, in milliseconds. */
const lingerMs = 1_000;

/**
 * Makes a listener of a receiver. It never throws. A framework must not have read the body before: its bytes are what is
 * verified.
 */
export const toNodeListener =
  (receiver: (request: Request) => Promise<Response>): NodeListener =>
  (incoming, outgoing) =>
    void answer(receiver, incoming, outgoing);

async function answer(
  receiver: (request: Request) => Promise<Response>,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<void> {
  try {
    const response = await receiver(await toRequest(incoming));
    const body = Buffer.from(await response.arrayBuffer());
    const rest = !incoming.readableEnded && !incoming.destroyed;
    // What is left of a body that nobody reads must not be taken for the next request.
    if (rest) outgoing.setHeader("connection", "close");
    outgoing.writeHead(response.status, Object.fromEntries(response.headers));
    outgoing.end(body, () => {
      if (rest) discardRest(incoming);
    });
  } catch {
    // The request line or a header is nothing that a Request can be made of, or the answer none that HTTP can send.
    if (!outgoing.headersSent) outgoing.writeHead(400, { connection: "close" });
    outgoing.end();
  }
}

/** Closing with unread bytes would reset the connection, and the sender might never see the answer. */
function discardRest(incoming: IncomingMessage): void {
  const timer = setTimeout(() => incoming.destroy(), lingerMs);
  incoming.once("close", () => clearTimeout(timer));
  incoming.removeAllListeners("data");
  incoming.resume();
}

async function toRequest(incoming: IncomingMessage): Promise<Request> {
  const { method = "GET", rawHeaders } = incoming;
  const headers = new Headers();
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!;
    // HTTP/2 keeps method and path among the headers.
    if (!name.startsWith(":")) headers.append(name, rawHeaders[i + 1]!);
  }
  // Express takes the path it is mounted on away from `url`.
  const target = (incoming as { originalUrl?: string }).originalUrl ?? incoming.url ?? "/";
  const url = new URL(`http://localhost${target.startsWith("/") ? target : "/"}`);
  if (method === "GET" || method === "HEAD") return new Request(url, { method, headers });
  if (incoming.readableEnded || incoming.readableFlowing === true) {
    // Somebody has read it: the receiver refuses a used body in its own words.
    const used = new Request(url, { method, headers, body: " " });
    await used.text();
    return used;
  }
  const body = Readable.toWeb(incoming) as ReadableStream<Uint8Array>;
  return new Request(url, { method, headers, body, duplex: "half" });
}

import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";

/** A listener for `node:http`, `node:https`, and frameworks that hand over their requests and responses. */
export type NodeListener = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

/** How long a sender that is refused in the middle of its body may take to read the answer, in milliseconds. */
const lingerMs = 1_000;

/**
 * Makes a listener of a receiver. It resolves when the answer is written or its reader is gone, and never rejects.
 * A framework must not have read the body before: its bytes are what is verified.
 */
export const toNodeListener =
  (receiver: (request: Request) => Promise<Response>): NodeListener =>
  async (incoming, outgoing) => {
    let answer: Response;
    try {
      answer = await receiver(await toRequest(incoming));
    } catch {
      // The request line or a header is nothing that a Request can be made of.
      answer = new Response(null, { status: 400 });
    }
    const body = Buffer.from(await answer.arrayBuffer());
    const rest = !incoming.readableEnded && !incoming.destroyed;
    // What is left of a body that nobody reads must not be taken for the next request.
    if (rest) outgoing.setHeader("connection", "close");
    outgoing.writeHead(answer.status, Object.fromEntries(answer.headers));
    await new Promise<void>((resolve) => {
      outgoing.once("close", resolve);
      outgoing.end(body, resolve);
    });
    if (rest) discardRest(incoming);
  };

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
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) headers.append(rawHeaders[i]!, rawHeaders[i + 1]!);
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

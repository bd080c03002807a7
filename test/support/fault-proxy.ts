import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { onTestEnd, type Scope } from "./cleanup.ts";

/** A TCP proxy before a server, which hurts its connections when told to. */
export interface FaultProxy {
  readonly host: string;
  readonly port: number;
  /** Delays each direction by this much, in milliseconds. Default 0. */
  latencyMs: number;
  /** Cuts the connection when the client next sends something that holds `text`; the server never sees it. */
  cutBefore(text: string): void;
  /** Passes on what the client sends that holds `text`, and cuts the connection when the server answers it. */
  dropReplyTo(text: string): void;
  /** Passes on what the client sends that holds `text`, and keeps the answer back for ever. */
  goSilentAfter(text: string): void;
  /** Cuts every connection there is. */
  cutAll(): void;
  /** While true every new connection is cut at once, as if nobody listened. Default false. */
  refuses: boolean;
  /** Connections of clients that are open now. */
  readonly connections: number;
}

type Fault = { readonly kind: "cut" | "drop" | "silence"; readonly text: string };

/** Starts a proxy on this port of the loopback interface, or on a free one; it ends with the test. */
export async function faultProxy(
  t: Scope,
  target: { host: string; port: number },
  port = 0,
): Promise<FaultProxy> {
  let fault: Fault | null = null;
  const sockets = new Set<Socket>();
  const cut = (...pair: Socket[]) => pair.forEach((socket) => socket.destroy());

  const server = createServer((client) => {
    if (proxy.refuses) return cut(client);
    const upstream = connect(target);
    let repliesDie: Fault["kind"] | null = null;
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.setNoDelay(true);
      socket.on("error", () => undefined);
      socket.on("close", () => {
        sockets.delete(socket);
        // One that is silent does not tell that it is gone, either.
        if (socket === client || repliesDie !== "silence") cut(client, upstream);
      });
    }
    client.on("data", (bytes) => {
      if (fault && bytes.includes(fault.text)) {
        const { kind } = fault;
        fault = null;
        if (kind === "cut") return cut(client, upstream);
        repliesDie = kind;
      }
      pass(upstream, bytes);
    });
    upstream.on("data", (bytes) => {
      if (repliesDie === "drop") return cut(client, upstream);
      if (repliesDie !== "silence") pass(client, bytes);
    });
  });

  function pass(to: Socket, bytes: Buffer): void {
    if (proxy.latencyMs === 0) to.write(bytes);
    else setTimeout(() => to.writable && to.write(bytes), proxy.latencyMs);
  }

  const proxy: FaultProxy = {
    host: "127.0.0.1",
    port: 0,
    latencyMs: 0,
    cutBefore: (text) => void (fault = { kind: "cut", text }),
    dropReplyTo: (text) => void (fault = { kind: "drop", text }),
    goSilentAfter: (text) => void (fault = { kind: "silence", text }),
    cutAll: () => cut(...sockets),
    refuses: false,
    // Each has one to the server, too.
    get connections() {
      return sockets.size / 2;
    },
  };

  await new Promise<void>((resolve) => server.listen(port, proxy.host, resolve));
  onTestEnd(t, () => {
    cut(...sockets);
    return new Promise<void>((resolve) => server.close(() => resolve()));
  });
  return Object.assign(proxy, { port: (server.address() as AddressInfo).port });
}

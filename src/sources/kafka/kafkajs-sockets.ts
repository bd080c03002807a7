import net from "node:net";
import tls from "node:tls";
import type { KafkajsSocketFactory } from "./kafkajs-shapes.ts";

/**
 * The client's sockets. kafkajs has no callback before partitions are taken away, but it gives them up by asking to join
 * again: that request is held back until `beforeJoin` resolves. After a broken connection it forgets a broker without ending
 * its other connection, which would keep the process alive; and told to disconnect while it joins it goes on connecting.
 */
export interface KafkajsSockets {
  readonly factory: KafkajsSocketFactory;
  /** Ends what is left, and lets no new one be made. */
  close(): void;
}

const keepAliveMs = 60_000;
// In the header of a request: its size, and then which one it is.
const keyOffset = 4;
const joinGroup = 11;

/** `make` is the user's own factory. */
export function createKafkajsSockets(
  beforeJoin: () => Promise<void>,
  make: KafkajsSocketFactory = usualSocket,
): KafkajsSockets {
  const open = new Set<net.Socket>();
  let closed = false;
  return {
    factory(options) {
      if (closed) throw new Error("The source is closed.");
      const socket = make(options);
      holdJoins(socket, beforeJoin);
      open.add(socket);
      socket.once("close", () => open.delete(socket));
      return socket;
    },
    close() {
      closed = true;
      for (const socket of open) socket.destroy(new Error("The source is closed."));
    },
  };
}

/** kafkajs writes each request at once. Others pass by the one that is held: answers find their requests by a number. */
function holdJoins(socket: net.Socket, beforeJoin: () => Promise<void>): void {
  const write = socket.write.bind(socket) as (...args: unknown[]) => boolean;
  socket.write = (...args: unknown[]): boolean => {
    const [chunk] = args;
    const isJoin =
      chunk instanceof Uint8Array &&
      chunk.length >= keyOffset + 2 &&
      new DataView(chunk.buffer, chunk.byteOffset).getInt16(keyOffset) === joinGroup;
    if (!isJoin) return write(...args);
    void beforeJoin().then(() => {
      if (!socket.destroyed) write(...args);
    });
    return true;
  };
}

/** As kafkajs makes them itself. */
const usualSocket: KafkajsSocketFactory = ({ host, port, ssl, onConnect }) => {
  const named = net.isIP(host) === 0 ? { servername: host } : {};
  const socket = ssl
    ? tls.connect({ host, port, ...named, ...ssl }, onConnect)
    : net.connect({ host, port }, onConnect);
  return socket.setKeepAlive(true, keepAliveMs);
};

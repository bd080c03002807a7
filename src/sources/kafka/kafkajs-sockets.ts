import net from "node:net";
import tls from "node:tls";
import type { KafkajsSocketFactory } from "./kafkajs-shapes.ts";

/**
 * The client's sockets. After a broken connection kafkajs forgets a broker without ending its other connection, which would
 * keep the process alive; and one that is told to disconnect while it joins goes on connecting.
 */
export interface KafkajsSockets {
  readonly factory: KafkajsSocketFactory;
  /** Ends what is left, and lets no new one be made. */
  close(): void;
}

const keepAliveMs = 60_000;

/** `make` is the user's own factory. */
export function createKafkajsSockets(make: KafkajsSocketFactory = usualSocket): KafkajsSockets {
  const open = new Set<net.Socket>();
  let closed = false;
  return {
    factory(options) {
      if (closed) throw new Error("The source is closed.");
      const socket = make(options);
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

/** As kafkajs makes them itself. */
const usualSocket: KafkajsSocketFactory = ({ host, port, ssl, onConnect }) => {
  const named = net.isIP(host) === 0 ? { servername: host } : {};
  const socket = ssl
    ? tls.connect({ host, port, ...named, ...ssl }, onConnect)
    : net.connect({ host, port }, onConnect);
  return socket.setKeepAlive(true, keepAliveMs);
};

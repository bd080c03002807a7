import type { PostgresJsConnection } from "./postgres-js-client.ts";

/** How many connections of a `postgres` client are open and idle, as far as the adapter has met them. */
export interface OpenConnections {
  size(): number;
  watch(connection: PostgresJsConnection): void;
}

/** The client keeps its lists to itself, but tells each connection's idle timer when it comes and goes. */
export function openConnections(): OpenConnections {
  const open = new Set<PostgresJsConnection>();
  const watched = new WeakSet<PostgresJsConnection>();
  return {
    size: () => open.size,
    watch(connection) {
      if (watched.has(connection)) return;
      watched.add(connection);
      const { idleTimer } = connection;
      connection.idleTimer = {
        start() {
          open.add(connection);
          idleTimer.start();
        },
        cancel() {
          open.delete(connection);
          idleTimer.cancel();
        },
      };
    },
  };
}

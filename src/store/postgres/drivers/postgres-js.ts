import { InboxError } from "../../../errors.ts";
import type { Driver } from "../driver.ts";
import type { PostgresJsLike } from "./postgres-js-client.ts";

/** The driver for a client of `postgres` 3.4. */
export function postgresJsDriver(sql: PostgresJsLike): Driver {
  return {
    name: "postgres",
    pipelined: false,
    maxConnections: sql.options.max,
    connect: () => Promise.reject(new InboxError("store-unavailable", "not built yet")),
  };
}

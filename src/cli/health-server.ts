import { createServer } from "node:http";
import { InvalidArgumentError } from "commander";

/** Where health is told. */
export interface HealthAddress {
  readonly host: string;
  readonly port: number;
}

export interface HealthServer {
  /** With the port, where 0 was asked for. */
  readonly address: HealthAddress;
  close(): Promise<void>;
}

/** An option's value as an address: `8080`, `0.0.0.0:8080`, `[::]:8080`. Without a host it is 127.0.0.1. */
export function healthAddress(text: string): HealthAddress {
  const match = /^(?:(\[[0-9a-f:.]+\]|[\w.-]+):)?(\d{1,5})$/i.exec(text);
  const port = Number(match?.[2]);
  if (match === null || port > 65_535) {
    throw new InvalidArgumentError("It must be a port, or host:port, such as 8080 or 0.0.0.0:8080.");
  }
  return { host: (match[1] ?? "127.0.0.1").replace(/^\[|\]$/g, ""), port };
}

/** Answers any request with the health as JSON: 200, or 503 while it is not well. Rejects if the port is taken. */
export async function serveHealth(
  { host, port }: HealthAddress,
  health: () => { readonly well: boolean; readonly body: unknown },
): Promise<HealthServer> {
  const server = createServer((request, response) => {
    request.resume();
    const { well, body } = health();
    response.writeHead(well ? 200 : 503, { "content-type": "application/json", "cache-control": "no-store" });
    response.end(`${JSON.stringify(body)}\n`);
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, resolve);
  });
  const bound = server.address();
  return {
    address: { host, port: typeof bound === "object" && bound !== null ? bound.port : port },
    async close() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => void server.close(() => resolve()));
    },
  };
}

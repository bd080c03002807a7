import { createServer } from "node:http";

// A receiver that reads each request and confirms it. Prints its port.

const server = createServer((request, response) => {
  request.resume().on("end", () => response.writeHead(204).end());
});
server.keepAliveTimeout = 60_000;
server.listen(0, "127.0.0.1", () => {
  process.stdout.write(`${(server.address() as { port: number }).port}\n`);
});
process.on("disconnect", () => process.exit(0));

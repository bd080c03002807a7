// A process that starts a server, says so in one JSON line, and lives until it is told to end or is killed.
import { startLocalPostgres } from "../../src/local-postgres/local-postgres.ts";
import { testBinaries } from "../support/server.ts";

const [directory, mode] = process.argv.slice(2);
const server = await startLocalPostgres({ directory: directory!, binaries: testBinaries() });
console.log(
  JSON.stringify({
    pid: server.pid,
    port: server.port,
    joined: server.joined,
    url: server.url,
    self: process.pid,
  }),
);
if (mode === "hold") {
  process.stdin.resume();
  process.stdin.once("end", () => process.exit(0));
}

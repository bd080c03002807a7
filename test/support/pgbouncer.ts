import { spawn } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { onTestEnd, type Scope } from "./cleanup.ts";

/** Where the program is, or undefined where it is not installed. */
export function pgbouncerPath(): string | undefined {
  const directories = (process.env["PATH"] ?? "").split(delimiter).concat("/usr/sbin", "/usr/local/sbin");
  return directories.map((directory) => join(directory, "pgbouncer")).find((path) => existsSync(path));
}

/**
 * Starts PgBouncer in transaction mode before the server at `url`, with two server connections, and returns the URL to
 * connect to. It ends with the test.
 */
export async function startPgbouncer(t: Scope, url: string): Promise<string> {
  const program = pgbouncerPath();
  if (program === undefined) throw new Error("pgbouncer is not installed.");
  const target = new URL(url);
  const port = await freePort();
  const directory = mkdtempSync(join(tmpdir(), "inbox-pgbouncer-"));
  chmodSync(directory, 0o755);
  onTestEnd(t, () => rmSync(directory, { recursive: true, force: true }));

  const user = decodeURIComponent(target.username || "postgres");
  const database = decodeURIComponent(target.pathname.slice(1) || user);
  const password = target.password === "" ? "" : ` password=${decodeURIComponent(target.password)}`;
  const config = join(directory, "pgbouncer.ini");
  writeFileSync(
    config,
    [
      "[databases]",
      `${database} = host=${target.hostname} port=${target.port || "5432"} dbname=${database} user=${user}${password}`,
      "[pgbouncer]",
      "listen_addr = 127.0.0.1",
      `listen_port = ${port}`,
      "unix_socket_dir =",
      "auth_type = any",
      "pool_mode = transaction",
      "default_pool_size = 2",
      "max_client_conn = 100",
      "ignore_startup_parameters = extra_float_digits,options",
      "",
    ].join("\n"),
  );
  chmodSync(config, 0o644);

  // It refuses to run as root, and -u takes an account it can change to.
  const asNobody = process.getuid?.() === 0 ? ["-u", "nobody"] : [];
  const child = spawn(program, [...asNobody, config], { stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  child.stderr.on("data", (bytes: Buffer) => (said += bytes.toString()));
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  onTestEnd(t, async () => {
    child.kill("SIGKILL");
    await exited;
  });

  await new Promise<void>((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`pgbouncer ended with ${code}: ${said}`)));
    const attempt = () => {
      const socket = connect(port, "127.0.0.1", () => {
        socket.destroy();
        resolve();
      });
      socket.on("error", () => setTimeout(attempt, 20));
    };
    attempt();
  });
  return `postgres://${encodeURIComponent(user)}@127.0.0.1:${port}/${encodeURIComponent(database)}`;
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise<void>((resolve) => server.close(() => resolve()));
  return port;
}

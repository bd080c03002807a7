import { randomInt } from "node:crypto";
import { createServer } from "node:net";

/**
 * Ports of 127.0.0.1 on which nothing listens. They lie below the range from which systems take the local ends of
 * connections, so that a service that was killed finds its port free when it starts again.
 */
export async function freePorts(names: readonly string[]): Promise<Readonly<Record<string, number>>> {
  const found: Record<string, number> = {};
  for (const name of names) {
    for (let tries = 0; found[name] === undefined; tries++) {
      const port = randomInt(15_000, 31_000);
      if (!Object.values(found).includes(port) && (await isFree(port))) found[name] = port;
      else if (tries > 200) throw new Error("There is no free port on 127.0.0.1 between 15000 and 31000.");
    }
  }
  return found;
}

/** Whether nothing listens on a port, of 127.0.0.1 or of all interfaces. */
export async function isFree(port: number): Promise<boolean> {
  for (const host of ["127.0.0.1", "0.0.0.0"]) {
    const server = createServer();
    const free = await new Promise<boolean>((resolve) => {
      server.once("error", () => resolve(false));
      server.listen({ port, host, exclusive: true }, () => resolve(true));
    });
    if (free) await new Promise((resolve) => server.close(resolve));
    else return false;
  }
  return true;
}

import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { programPath } from "./processes.ts";
import type { Help, Open, Place, Plan, Program, Way } from "./way.ts";

const run = promisify(execFile);
const file = join(import.meta.dirname, "compose.yaml");
// How Docker is told where its engine is; the rest of this process's environment is none of its business.
const passedOn = [
  "DOCKER_HOST",
  "DOCKER_CONTEXT",
  "DOCKER_CONFIG",
  "DOCKER_CERT_PATH",
  "DOCKER_TLS_VERIFY",
  "XDG_RUNTIME_DIR",
];

/** A service of `compose.yaml`. */
export interface ComposeService<Facts> {
  /** Its name there. */
  readonly service: string;
  /** The variables for its ports in `compose.yaml`, by the ports' names. */
  readonly ports: Readonly<Record<string, string>>;
  facts(ports: Place["ports"]): Facts;
  check(facts: Facts): Promise<void>;
  /** Files of the place that stand in for files of the container, by their paths there, with what they hold at first. */
  readonly files?: Readonly<Record<string, string>>;
}

/**
 * A container, where an engine answers `docker info`. Its data lives as long as the container: until the place is removed.
 */
export function fromCompose<Facts>(service: ComposeService<Facts>): Way<Facts> {
  return {
    name: `${service.service} by Docker Compose`,
    ports: Object.keys(service.ports),
    open: (help) => open(service.service, help),
    plan: (place) => planOf(service, place),
  };
}

function planOf<Facts>(service: ComposeService<Facts>, { directory, ports }: Place): Plan<Facts> {
  const facts = service.facts(ports);
  const files = Object.entries(service.files ?? {}).map(
    ([path, content]) => [path, join(directory, path.split("/").at(-1)!), content] as const,
  );
  const override = join(directory, "override.yaml");
  const project = `inbox-${createHash("sha256").update(directory).digest("hex").slice(0, 16)}`;
  const docker = (...args: readonly string[]): Program => ({
    program: programPath("docker") ?? "docker",
    args: ["compose", "-p", project, "-f", file, ...(files.length > 0 ? ["-f", override] : []), ...args],
    env: {
      ...Object.fromEntries(passedOn.map((name) => [name, process.env[name]])),
      ...Object.fromEntries(
        Object.entries(service.ports).map(([name, variable]) => [variable, String(ports[name])]),
      ),
    },
  });
  return {
    facts,
    // In the foreground: when the container ends so does this process, and SIGTERM here stops the container.
    commands: [{ name: service.service, ...docker("up", "--no-log-prefix", service.service) }],
    gentle: true,
    afterKill: docker("kill"),
    remove: docker("down", "--volumes", "--timeout", "0"),
    async setUp() {
      if (files.length === 0) return;
      for (const [, path, content] of files) writeFileSync(path, content);
      const volumes = files.map(([target, source]) => ({ type: "bind", source, target, read_only: true }));
      // JSON is YAML.
      writeFileSync(override, JSON.stringify({ services: { [service.service]: { volumes } } }));
    },
    check: () => service.check(facts),
    startTimeoutMs: 120_000,
    stopTimeoutMs: 30_000,
  };
}

async function open(service: string, { install, say }: Help): Promise<Open> {
  const docker = programPath("docker");
  if (docker === undefined) return "there is no docker";
  try {
    await run(docker, ["info", "--format", "{{.ServerVersion}}"], { timeout: 10_000 });
    await run(docker, ["compose", "version"], { timeout: 10_000 });
  } catch {
    return "no engine answers docker info, or there is no docker compose";
  }
  const image = imageOf(service);
  const there = await run(docker, ["image", "inspect", image], { timeout: 10_000 }).then(
    () => true,
    () => false,
  );
  if (there) return undefined;
  if (!install) return `the image ${image} is not here (npm run services -- up downloads it)`;
  say(`Downloading the image ${image}.`);
  try {
    await run(docker, ["pull", "--quiet", image], { timeout: 8 * 60_000 });
    return undefined;
  } catch (error) {
    return `docker could not pull ${image}: ${String(error).trim().split("\n").at(-1)}`;
  }
}

/** As `compose.yaml` names it. */
function imageOf(service: string): string {
  const text = readFileSync(file, "utf8");
  const image = new RegExp(`^  ${service}:\\n(?:    .*\\n)*?    image: (\\S+)$`, "m").exec(text)?.[1];
  if (image === undefined) throw new Error(`compose.yaml names no image for ${service}.`);
  return image;
}

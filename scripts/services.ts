// The services that the tests use: `npm run services -- up|down|status [NAME...] [--json]`. See CONTRIBUTING.md.
import { parseArgs } from "node:util";
import type { ServiceFacts, ServiceName } from "../test/services/facts.ts";
import { installClient } from "../test/services/install-client.ts";
import type { ExtraClient } from "../test/services/kafka-clients.ts";
import { kinds } from "../test/services/kinds.ts";
import { sharedService } from "../test/services/shared.ts";
import type { Help, Kind } from "../test/services/way.ts";

const usage = `Usage: npm run services -- up|down|status [NAME...] [--json]

The services that the tests use. up finds or starts them and leaves them running; status tells what there is; down ends
what up started, and nothing else. Without names: all of them.

  kafka              one KRaft node                KAFKA_BROKERS
  kafka-cluster      three KRaft nodes             KAFKA_CLUSTER_BROKERS
  rabbitmq           with quorum queues            AMQP_URL
  nats               with JetStream                NATS_URL
  sqs                ElasticMQ or fauxqs           SQS_ENDPOINT
  postgres           the one that npm ships        DATABASE_URL
  pgbouncer          in transaction mode           PGBOUNCER_URL

Only when named, for up:
  kafka-confluent, kafka-platformatic              installs the client below .cache

Each is searched for in this order: the variable, what was started here before, what listens on the usual port and
speaks the protocol (not for PostgreSQL), Docker Compose where an engine answers (not for kafka-cluster and PostgreSQL),
packages of Debian (installed where we are root), Java programs of Maven Central, what npm ships.

TEST_SERVICES_USUAL=0 leaves alone what listens already; TEST_SERVICES_DIRECTORY keeps a set of services apart.

On stdout: lines for a shell, as in  eval "$(npm run --silent services -- up)"  ; with --json one object. The rest goes to
stderr. Ends with 0, with 1 where a service could not be had, with 2 for wrong usage.
`;

const clients: Readonly<Record<string, ExtraClient>> = {
  "kafka-confluent": "confluent",
  "kafka-platformatic": "platformatic",
};

type Report = {
  readonly state: "up" | "down" | "missing" | "installed";
  readonly from?: string;
  readonly reason?: string;
  readonly pids?: readonly number[];
  /** How many processes use it now. */
  readonly users?: number;
  readonly kept?: boolean;
  readonly environment?: Readonly<Record<string, string>>;
};

const help: Help = { install: true, say: talk };

process.exitCode = await main(process.argv.slice(2));

async function main(argv: readonly string[]): Promise<number> {
  let parsed;
  try {
    parsed = parseArgs({
      args: [...argv],
      allowPositionals: true,
      options: {
        json: { type: "boolean", default: false },
        help: { type: "boolean", short: "h", default: false },
      },
    });
  } catch (error) {
    return wrong(error instanceof Error ? error.message : String(error));
  }
  const { values, positionals } = parsed;
  if (values.help) {
    process.stdout.write(usage);
    return 0;
  }
  const [verb, ...names] = positionals;
  if (verb !== "up" && verb !== "down" && verb !== "status")
    return wrong(`There is no command ${verb ?? ""}`);
  const unknown = names.find((name) => !(name in kinds) && !(verb === "up" && name in clients));
  if (unknown !== undefined) return wrong(`There is no service ${unknown} for ${verb}`);

  const chosen = names.length > 0 ? names : Object.keys(kinds);
  const reports: Record<string, Report> = {};
  // One after the other: they share what is downloaded and installed, and two cores.
  for (const name of chosen) {
    reports[name] = name in clients ? await client(clients[name]!) : await act(verb, name as ServiceName);
    talk(`${name}: ${sentence(reports[name])}`);
  }
  if (values.json) process.stdout.write(`${JSON.stringify(reports, undefined, 2)}\n`);
  else {
    for (const { environment = {} } of Object.values(reports)) {
      for (const [variable, value] of Object.entries(environment))
        process.stdout.write(`export ${variable}='${value.replaceAll("'", "'\\''")}'\n`);
    }
  }
  return Object.values(reports).some(({ state }) => state === "missing") ? 1 : 0;
}

async function act(verb: "up" | "down" | "status", name: ServiceName): Promise<Report> {
  const shared = sharedService(name, kinds[name] as unknown as Kind<ServiceFacts[ServiceName]>);
  if (verb === "down") {
    return (await shared.end())
      ? { state: "down", reason: "ended" }
      : { state: "down", reason: "nothing was started here" };
  }
  const found = verb === "up" ? await shared.keep(help) : await shared.look();
  if (found.kind === "missing") return { state: verb === "up" ? "missing" : "down", reason: found.reason };
  const { facts, from, kind: _kind, ...rest } = found;
  return { state: "up", from, ...rest, environment: environmentOf(name, facts) };
}

async function client(name: ExtraClient): Promise<Report> {
  const reason = await installClient(name, help);
  return reason === undefined ? { state: "installed" } : { state: "missing", reason };
}

function environmentOf(name: ServiceName, facts: ServiceFacts[ServiceName]): Record<string, string> {
  const variables: Record<ServiceName, string> = {
    kafka: "KAFKA_BROKERS",
    "kafka-cluster": "KAFKA_CLUSTER_BROKERS",
    rabbitmq: "AMQP_URL",
    nats: "NATS_URL",
    sqs: "SQS_ENDPOINT",
    postgres: "DATABASE_URL",
    pgbouncer: "PGBOUNCER_URL",
  };
  const value =
    "brokers" in facts ? facts.brokers.join(",") : "endpoint" in facts ? facts.endpoint : facts.url;
  return { [variables[name]]: value };
}

function sentence({ state, from, reason, users, kept }: Report): string {
  if (state !== "up") return reason === undefined ? state : `${state}, ${reason}`;
  const use = users === undefined ? "" : `, used by ${users} processes${kept ? ", kept running" : ""}`;
  return `up (${from}${use})`;
}

function wrong(message: string): number {
  talk(`${message}.\n\n${usage}`);
  return 2;
}

function talk(text: string): void {
  process.stderr.write(`${text}\n`);
}

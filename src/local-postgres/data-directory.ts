import { execFile } from "node:child_process";
import { randomBytes, randomUUID } from "node:crypto";
import {
  chmodSync,
  chownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { InboxError } from "../errors.ts";
import { reachableBinaries, reachableDirectory, barredAt, chooseRunAs, type RunAs } from "./run-as.ts";
import type { PostgresBinaries } from "./binaries.ts";
import { postgresEnvironment } from "./postmaster.ts";

/** Where a local server lives. */
export interface Place {
  /** Holds `data`, the password's file, the log, the lock and the list of users. */
  readonly directory: string;
  readonly data: string;
  readonly binaries: PostgresBinaries;
  readonly runAs: RunAs | undefined;
}

const run = promisify(execFile);

/**
 * Makes the directory, or, where PostgreSQL's user could not reach it (root's own home), one under `/var/tmp` that
 * stands for it; `notice` is told.
 */
export function preparePlace(
  asked: string,
  binaries: PostgresBinaries,
  notice: (text: string) => void,
): Place {
  const runAs = chooseRunAs(resolve(asked));
  if (runAs === undefined) return { ...makeDirectory(asked, 0o700), binaries, runAs };
  let place = makeDirectory(asked, 0o711);
  const barrier = barredAt(place.data, runAs);
  if (barrier !== undefined) {
    place = makeDirectory(reachableDirectory(place.directory), 0o711);
    notice(
      `PostgreSQL does not run as root, and the user it runs as (${runAs.uid}) may not enter ${barrier}: ` +
        `its data is in ${place.directory} instead.`,
    );
  }
  return { ...place, binaries: reachableBinaries(binaries, runAs), runAs };
}

/**
 * Creates the database cluster unless there is one, and returns its password. Call it under the directory's lock. A
 * cluster appears complete or not at all: dying here leaves a draft that the next call removes.
 */
export async function prepareData(place: Place): Promise<{ password: string; major: number }> {
  const passwordPath = join(place.directory, "password");
  const version = readOptional(join(place.data, "PG_VERSION"));
  const existing = readOptional(passwordPath);
  if (version === undefined) {
    const password = existing ?? randomBytes(24).toString("hex");
    writeFileSync(passwordPath, password, { mode: 0o600 });
    await createCluster(place, password);
    return { password, major: Number.parseInt(readFileSync(join(place.data, "PG_VERSION"), "utf8"), 10) };
  }
  if (existing === undefined) {
    throw new InboxError(
      "local-postgres",
      `${passwordPath} is missing; without it nobody can connect. Put it back, or remove ${place.directory}.`,
    );
  }
  checkOwner(place);
  await checkVersion(place, version);
  return { password: existing, major: Number.parseInt(version, 10) };
}

async function createCluster(place: Place, password: string): Promise<void> {
  for (const name of readdirSync(place.directory)) {
    if (name.startsWith("data.")) rmSync(join(place.directory, name), { recursive: true, force: true });
  }
  const draft = join(place.directory, `data.${randomUUID()}`);
  const passwordFile = join(place.directory, `data.${randomUUID()}.password`);
  mkdirSync(draft, { mode: 0o700 });
  writeFileSync(passwordFile, password, { mode: 0o600 });
  if (place.runAs !== undefined) {
    chownSync(draft, place.runAs.uid, place.runAs.gid);
    chownSync(passwordFile, place.runAs.uid, place.runAs.gid);
  }
  const options = [
    "-D",
    draft,
    "-U",
    "postgres",
    "-A",
    "scram-sha-256",
    `--pwfile=${passwordFile}`,
    "-E",
    "UTF8",
    "--locale=C",
  ];
  try {
    await run(place.binaries.initdb, options, { ...place.runAs, cwd: draft, env: postgresEnvironment() });
  } catch (error) {
    rmSync(draft, { recursive: true, force: true });
    const { stderr, message } = error as { stderr?: string; message: string };
    throw new InboxError(
      "local-postgres",
      `initdb failed in ${place.directory}: ${stderr?.trim() || message}`,
      { cause: error },
    );
  } finally {
    rmSync(passwordFile, { force: true });
  }
  renameSync(draft, place.data);
}

function checkOwner({ data, runAs }: Place): void {
  const owner = statSync(data).uid;
  const self = runAs?.uid ?? process.getuid?.() ?? owner;
  if (owner !== self) {
    throw new InboxError(
      "local-postgres",
      `${data} belongs to user ${owner}, so this process (user ${self}) cannot run its PostgreSQL. Run as that user, or give another directory.`,
    );
  }
}

async function checkVersion(place: Place, version: string): Promise<void> {
  const { stdout } = await run(place.binaries.postgres, ["--version"]);
  const major = /(\d+)/.exec(stdout)?.[1];
  if (major !== version) {
    throw new InboxError(
      "local-postgres",
      `${place.data} was made by PostgreSQL ${version}, the programs are of PostgreSQL ${major}. Give another directory, or the old programs.`,
    );
  }
}

function makeDirectory(asked: string, mode: number): { directory: string; data: string } {
  mkdirSync(asked, { recursive: true, mode: 0o755 });
  const directory = realpathSync(asked);
  const stat = statSync(directory);
  // Somebody else's directory keeps its mode.
  if (stat.uid === process.getuid?.()) chmodSync(directory, mode);
  return { directory, data: join(directory, "data") };
}

function readOptional(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8").trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

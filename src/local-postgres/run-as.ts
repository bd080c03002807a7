import { createHash, randomUUID } from "node:crypto";
import { cpSync, existsSync, lstatSync, mkdirSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { InboxError } from "../errors.ts";
import { postgresBinaries, type PostgresBinaries } from "./binaries.ts";

/** The user that PostgreSQL runs as. */
export interface RunAs {
  readonly uid: number;
  readonly gid: number;
}

const nobody: RunAs = { uid: 65534, gid: 65534 };

/**
 * PostgreSQL refuses to run as root. Started by root, it runs as the owner of the place it is to live in, or, where
 * that is root too, as `nobody`. `undefined`: as the one who runs us.
 */
export function chooseRunAs(directory: string): RunAs | undefined {
  if (process.getuid?.() !== 0) return undefined;
  for (const path of [join(directory, "data"), ...ancestors(directory)]) {
    const stat = statSync(path, { throwIfNoEntry: false });
    if (stat === undefined) continue;
    return stat.uid === 0 ? nobody : { uid: stat.uid, gid: stat.gid };
  }
  return nobody;
}

/** The first directory on the way to `path` that `who` may not enter, or `undefined` when there is none. */
export function barredAt(path: string, who: RunAs): string | undefined {
  for (const directory of ancestors(path).reverse()) {
    const stat = statSync(directory, { throwIfNoEntry: false });
    if (stat === undefined) return undefined;
    const bit = stat.uid === who.uid ? 0o100 : stat.gid === who.gid ? 0o010 : 0o001;
    if ((stat.mode & bit) === 0) return directory;
  }
  return undefined;
}

/**
 * A place that every user can reach, for a directory that `who` cannot: always the same one for the same directory.
 * Below `/var/tmp`, which outlives a reboot.
 */
export function reachableDirectory(directory: string, parent: string = commonParent()): string {
  return join(parent, createHash("sha256").update(resolve(directory)).digest("hex").slice(0, 16));
}

/** The same programs where `who` can reach them: copied once (about 60 MB) if they are not. */
export function reachableBinaries(binaries: PostgresBinaries, who: RunAs, parent?: string): PostgresBinaries {
  if (barredAt(binaries.root, who) === undefined) return binaries;
  const { mtimeMs, size } = statSync(binaries.postgres);
  const copy = reachableDirectory(`${binaries.root}:${mtimeMs}:${size}`, parent);
  if (!existsSync(copy)) {
    const draft = `${copy}.${randomUUID()}`;
    cpSync(binaries.root, draft, { recursive: true, verbatimSymlinks: true });
    try {
      renameSync(draft, copy);
    } catch (error) {
      rmSync(draft, { recursive: true, force: true });
      // Another process was faster: its copy is as good as ours.
      if (!existsSync(copy)) throw error;
    }
  }
  return postgresBinaries(copy);
}

/** Created by root and writable by nobody else, so that no other user can put programs or data there first. */
function commonParent(): string {
  const parent = "/var/tmp/transactional-inbox";
  mkdirSync(parent, { recursive: true, mode: 0o755 });
  const stat = lstatSync(parent);
  if (!stat.isDirectory() || stat.uid !== process.getuid?.() || (stat.mode & 0o022) !== 0) {
    throw new InboxError(
      "local-postgres",
      `${parent} is not a directory that only its owner can write to. Remove it and try again.`,
    );
  }
  return parent;
}

function ancestors(path: string): string[] {
  const absolute = resolve(path);
  const parent = dirname(absolute);
  return parent === absolute ? [absolute] : [absolute, ...ancestors(parent)];
}

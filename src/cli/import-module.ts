import { existsSync, realpathSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { UsageError } from "./usage-error.ts";

const packageName = "transactional-inbox";

/**
 * Imports a JavaScript or TypeScript module of the user's. TypeScript is read by Node itself where it can, else by jiti.
 * Throws a usage error where there is no such file; whatever the module throws comes through.
 */
export async function importModule(path: string): Promise<Record<string, unknown>> {
  const file = resolve(path);
  if (!existsSync(file)) throw new UsageError(`There is no file ${path}.`);
  try {
    const module = (await import(pathToFileURL(file).href)) as Record<string, unknown>;
    refuseAnotherCopy(file);
    return module;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "ERR_UNKNOWN_FILE_EXTENSION" && code !== "ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX") throw error;
  }
  const { createJiti } = await import("jiti");
  // What the handler imports from this package must be what this command runs with: see `refuseAnotherCopy`.
  const virtualModules = {
    [packageName]: await import("../index.ts"),
    [`${packageName}/relay`]: await import("../relay/relay.ts"),
  };
  const jiti = createJiti(pathToFileURL(file).href, { virtualModules, interopDefault: false });
  return await jiti.import(file);
}

/**
 * A handler's `sql` and `PermanentError` are known by their classes, and another copy of this package has others: its
 * statements would not be run. Better to say so than to apply nothing.
 */
function refuseAnotherCopy(file: string): void {
  let theirs: string;
  let ours: string;
  try {
    theirs = realpathSync(createRequire(file).resolve(packageName));
    ours = realpathSync(fileURLToPath(new URL("../index.js", import.meta.url)));
  } catch {
    // It uses none, or this runs from its sources.
    return;
  }
  if (theirs !== ours) {
    throw new UsageError(
      `${file} uses the ${packageName} at ${theirs}, this command is another copy. Run that one's: npx inbox run ...`,
    );
  }
}

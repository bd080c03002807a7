import { existsSync, realpathSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { Handler } from "../inbox/handler.ts";
import type { InboxOptions } from "../inbox/options.ts";
import type { Tx } from "../store/statement.ts";
import { UsageError } from "./usage-error.ts";

/** What a handler's module gives. */
export interface LoadedHandler {
  readonly handler: Handler;
  /** `export const options`: anything `createInbox` takes but the store. */
  readonly options: Partial<Omit<InboxOptions, "store">>;
  /** `export async function prepare(db)`: run once before the first message, to create the handler's own tables. */
  readonly prepare: ((db: Tx) => unknown) | undefined;
}

const packageName = "transactional-inbox";

/**
 * Loads a handler from a JavaScript or TypeScript module: its default export, or one named `handler`. TypeScript is
 * read by Node itself where it can, else by jiti. Throws a usage error for what is no handler; whatever the module
 * throws comes through.
 */
export async function loadHandler(path: string): Promise<LoadedHandler> {
  const file = resolve(path);
  if (!existsSync(file)) throw new UsageError(`There is no file ${path}.`);
  const module = await importModule(file);
  const handler = module["default"] ?? module["handler"];
  if (!isHandler(handler)) {
    throw new UsageError(
      `${path} exports no handler. Write: export default async (message, { tx }) => { ... }, or batch(...).`,
    );
  }
  const { options, prepare } = module;
  if (options !== undefined && (typeof options !== "object" || options === null || "store" in options)) {
    throw new UsageError(`${path}: "options" must be an object of inbox options, without a store.`);
  }
  if (prepare !== undefined && typeof prepare !== "function") {
    throw new UsageError(`${path}: "prepare" must be a function that takes the database.`);
  }
  return { handler, options: options ?? {}, prepare: prepare as LoadedHandler["prepare"] };
}

async function importModule(file: string): Promise<Record<string, unknown>> {
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
  const virtualModules = { [packageName]: await import("../index.ts") };
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

function isHandler(value: unknown): value is Handler {
  if (typeof value === "function") return true;
  return (
    typeof value === "object" &&
    value !== null &&
    "handleBatch" in value &&
    typeof value.handleBatch === "function"
  );
}

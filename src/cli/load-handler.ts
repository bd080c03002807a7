import type { Handler } from "../inbox/handler.ts";
import type { InboxOptions } from "../inbox/options.ts";
import type { Tx } from "../store/statement.ts";
import { importModule } from "./import-module.ts";
import { UsageError } from "./usage-error.ts";

/** What a handler's module gives. */
export interface LoadedHandler {
  readonly handler: Handler;
  /** `export const options`: anything `createInbox` takes but the store. */
  readonly options: Partial<Omit<InboxOptions, "store">>;
  /** `export async function prepare(db)`: run once before the first message, to create the handler's own tables. */
  readonly prepare: ((db: Tx) => unknown) | undefined;
}

/**
 * Loads a handler from a JavaScript or TypeScript module: its default export, or one named `handler`. TypeScript is
 * read by Node itself where it can, else by jiti. Throws a usage error for what is no handler; whatever the module
 * throws comes through.
 */
export async function loadHandler(path: string): Promise<LoadedHandler> {
  const module = await importModule(path);
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

function isHandler(value: unknown): value is Handler {
  if (typeof value === "function") return true;
  return (
    typeof value === "object" &&
    value !== null &&
    "handleBatch" in value &&
    typeof value.handleBatch === "function"
  );
}

import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import type { TestContext } from "node:test";
import { pathToFileURL } from "node:url";
import { requireOrSkip } from "../support/require-or-skip.ts";

/** Clients that are no development dependency: one has to be built on many machines, the other wants a newer Node. */
export type ExtraClient = "confluent" | "platformatic";

interface Extra {
  readonly packageName: string;
  /** What `npm install` is given. */
  readonly version: string;
  /** The oldest Node it runs on. */
  readonly oldestNode: readonly [major: number, minor: number];
}

/** What `npm run services -- up kafka-confluent` and `kafka-platformatic` install below `.cache`. */
export const extraClients: Readonly<Record<ExtraClient, Extra>> = {
  confluent: { packageName: "@confluentinc/kafka-javascript", version: "1.10", oldestNode: [18, 0] },
  platformatic: { packageName: "@platformatic/kafka", version: "2.12", oldestNode: [22, 22] },
};

/** Those of the clients, by name, that `TEST_KAFKA_CLIENTS` names, apart by commas; all where it is not set. */
export function chosenClients<T>(
  all: Readonly<Record<string, T>>,
): readonly (readonly [name: string, client: T])[] {
  const names = process.env["TEST_KAFKA_CLIENTS"]?.split(",") ?? Object.keys(all);
  return names.map((name) => {
    const client = all[name];
    if (client === undefined) throw new Error(`TEST_KAFKA_CLIENTS: there is no client ${name}.`);
    return [name, client];
  });
}

/** Where a client is installed, with its own `node_modules`. */
export const extraClientDirectory = (name: ExtraClient): string =>
  resolve(import.meta.dirname, "../..", ".cache", name);

/** Whether it was installed by a Node with another binary interface than this one's. */
function isForAnotherNode(name: ExtraClient): boolean {
  const path = join(extraClientDirectory(name), "installed");
  return existsSync(path) && readFileSync(path, "utf8").trim() !== process.versions.modules;
}

/** The client's module, for a process without a test around it. Rejects where it cannot be loaded. */
export async function loadExtraClient(name: ExtraClient): Promise<unknown> {
  const require = createRequire(join(extraClientDirectory(name), "package.json"));
  const loaded = (await import(pathToFileURL(require.resolve(extraClients[name].packageName)).href)) as {
    default?: unknown;
  };
  // One is CommonJS, and its exports are not all seen from outside.
  return loaded.default ?? loaded;
}

/**
 * The client's module, or `undefined` (return) after skipping the test with the reason. With `CI=true` a client that is
 * not installed fails the test; on a Node that it is not for the test is skipped there, too.
 */
export async function extraClient(t: TestContext, name: ExtraClient): Promise<unknown> {
  const { packageName, oldestNode } = extraClients[name];
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  if (major < oldestNode[0] || (major === oldestNode[0] && minor < oldestNode[1])) {
    t.skip(`${packageName} needs Node ${oldestNode.join(".")}, and this is ${process.versions.node}`);
    return undefined;
  }
  try {
    return await loadExtraClient(name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ERR_DLOPEN_FAILED" && isForAnotherNode(name)) {
      t.skip(`${packageName} in .cache was built for another Node: ${String(error).split("\n").at(-1)}`);
      return undefined;
    }
    const how = `npm run services -- up kafka-${name}`;
    requireOrSkip(t, false, `${packageName} cannot be loaded (${how} installs it): ${String(error)}`);
    return undefined;
  }
}

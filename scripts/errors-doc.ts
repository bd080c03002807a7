import { writeFileSync } from "node:fs";
import { errorCatalogue } from "../src/errors.ts";

/** `docs/errors.md`, made from the catalogue; `test/docs.test.ts` compares. */
export function errorsDocument(): string {
  const rows = Object.entries(errorCatalogue)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([code, { retryable, meaning }]) => `| \`${code}\` | ${retryable ? "yes" : "no"} | ${meaning} |`);
  return [
    "# Errors",
    "",
    "Every error of this library is an `InboxError` with a stable `code`. *Retryable*: the same may succeed later without",
    "anybody changing anything. Made from `src/errors.ts` by `npm run docs`.",
    "",
    "| code | retryable | meaning |",
    "| --- | --- | --- |",
    ...rows,
    "",
  ].join("\n");
}

if (process.argv[1]?.endsWith("errors-doc.ts")) {
  writeFileSync(new URL("../docs/errors.md", import.meta.url), errorsDocument());
}

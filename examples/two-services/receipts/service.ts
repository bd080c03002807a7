// Somebody else's service, as a relay meets it: it writes a receipt for each request, and counts them by idempotency key.
// It knows no inbox. What it has written is in a file, so that it can be killed like the others.
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { json } from "node:stream/consumers";
import type { OrderPlaced } from "../order-placed.ts";
import { readLines, type ReceiptLine } from "./receipt-line.ts";

const path = process.env["RECEIPTS_FILE"]!;
const counts = new Map<string, number>();
const count = (key: string): number => {
  const now = (counts.get(key) ?? 0) + 1;
  counts.set(key, now);
  return now;
};
if (existsSync(path)) for (const { key } of readLines(readFileSync(path, "utf8"))) count(key);

const server = createServer((request, response) => {
  void json(request).then(
    (body) => {
      const key = String(request.headers["idempotency-key"]);
      const line: ReceiptLine = { key, receipt: body as OrderPlaced };
      // A line is with the operating system when this returns, which outlives the process.
      appendFileSync(path, `${JSON.stringify(line)}\n`);
      response.end(`request ${count(key)} for this receipt`);
    },
    // The relay was killed in the middle of its request.
    () => response.writeHead(400).end(),
  );
});
server.listen(Number(process.env["RECEIPTS_PORT"]), "127.0.0.1");

process.once("SIGTERM", () => {
  server.close();
  server.closeIdleConnections();
});

import { createHash } from "node:crypto";
import Table from "cli-table3";
import { createIdentityDigest } from "../src/message/identity.ts";
import { createMessage } from "../src/message/create-message.ts";
import { computeFingerprint } from "../src/message/fingerprint.ts";
import type { FingerprintMode } from "../src/message/fingerprint.ts";
import { cloudevents } from "../src/message/formats/cloudevents-format.ts";
import { isRejected } from "../src/message/message.ts";
import type { RawDelivery } from "../src/message/formats/format.ts";

// What a message costs before it reaches the database, on one core. Rates are by the CPU time of the process, so that a
// busy machine does not change them, and the best of several rounds.

const rounds = 12;
const roundMs = 150;

interface Measure {
  readonly name: string;
  /** The least that is asked for, a second; `undefined` where nothing is. */
  readonly atLeast: number | undefined;
  readonly run: (i: number) => number;
}

/** A document of `bytes` bytes, or a little over: nested objects, texts, decimals, keys out of order. */
function documentOf(bytes: number): Buffer {
  const lines: object[] = [];
  const text = (): string =>
    JSON.stringify({
      invoice: "INV-7001",
      customer: { name: "Café Zürich", id: 4711 },
      currency: "EUR",
      amount: 125.5,
      lines,
    });
  while (Buffer.byteLength(text()) < bytes) {
    const i = lines.length;
    lines.push({
      sku: `A-${i}`,
      qty: i + 1,
      total: 39.98 + i,
      note: `line ${i}`,
      taxable: true,
      tags: ["x", "y"],
    });
  }
  return Buffer.from(text());
}

function measures(): readonly Measure[] {
  const body = documentOf(1_024);
  const ids = Array.from({ length: 4_096 }, (_, i) => {
    const hex = createHash("sha256").update(String(i)).digest("hex");
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
  });
  const id = (i: number): string => ids[i % ids.length]!;
  const text = (value: string): Buffer => Buffer.from(value);
  const kafka = (i: number): RawDelivery => ({
    body,
    key: keyBytes,
    channel: "invoices",
    headers: {
      ce_specversion: version,
      ce_id: idBytes[i % ids.length],
      ce_source: source,
      ce_type: type,
      ce_time: time,
      "content-type": contentType,
    },
  });
  const [version, source, type, contentType, keyBytes, time] = [
    "1.0",
    "/billing/eu",
    "com.example.invoice.issued",
    "application/json",
    "inv-7001",
    "2026-03-02T08:15:30.123456Z",
  ].map(text);
  const idBytes = ids.map(text);
  const kept: unknown[] = Array.from({ length: 1_024 });
  const binary = cloudevents();
  const digest = createIdentityDigest("accounting");
  const structured = idBytes.map((_, i) =>
    Buffer.from(
      `{"specversion":"1.0","id":"${id(i)}","source":"/billing/eu","type":"t","time":"2026-03-02T08:15:30Z","data":${body.toString()}}`,
    ),
  );
  const read = (delivery: RawDelivery, mode: FingerprintMode): number => {
    const [item] = binary.read(delivery);
    if (item?.kind !== "message" || isRejected(item.received))
      throw new Error("the benchmark's own event was rejected");
    return item.received.fingerprint(mode).digest.length;
  };
  return [
    {
      name: `CloudEvents binary identity and bytes fingerprint, ${body.length} bytes`,
      atLeast: 150_000,
      run: (i) => read(kafka(i), "b"),
    },
    {
      name: `canonical JSON fingerprint, ${body.length} bytes`,
      atLeast: 40_000,
      run: () => computeFingerprint("j", body).digest.length,
    },
    {
      name: "canonical JSON fingerprint, two paths left out",
      atLeast: undefined,
      run: () => computeFingerprint("j-/currency,/customer/id", body).digest.length,
    },
    {
      name: "CloudEvents structured identity and bytes fingerprint",
      atLeast: undefined,
      run: (i) => read({ body: structured[i % structured.length]! }, "b"),
    },
    {
      name: "identity digest",
      atLeast: 500_000,
      run: (i) => digest({ tenant: "", producer: "/billing/eu", id: id(i) }).length,
    },
    {
      name: "create a message",
      atLeast: 100_000,
      run: (i) => {
        // Kept for a while, so that its allocation cannot be left out.
        kept[i % kept.length] = createMessage({
          producer: "/billing/eu",
          id: id(i),
          payload: body,
          key: "inv-7001",
        });
        return 1;
      },
    },
  ];
}

/** Operations a second of CPU time, the best of the rounds. */
function rateOf(run: (i: number) => number): number {
  let best = 0;
  let sum = 0;
  let count = 0;
  for (let round = 0; round < rounds; round++) {
    const started = process.cpuUsage();
    const first = count;
    let micros: number;
    do {
      for (let i = 0; i < 500; i++) sum += run(count++);
      const { user, system } = process.cpuUsage(started);
      micros = user + system;
    } while (micros < roundMs * 1_000);
    best = Math.max(best, ((count - first) / micros) * 1_000_000);
  }
  // The results are used, so that nothing can be left out as dead.
  if (sum === 0) throw new Error("the benchmark measured nothing");
  return best;
}

/** Measures identities and fingerprints and prints the rates, as a table or as one JSON object; says if a bar is missed. */
export function benchIdentity({ json = false }: { readonly json?: boolean | undefined } = {}): void {
  const results = measures().map(({ name, atLeast, run }) => ({
    name,
    perSecond: Math.round(rateOf(run)),
    atLeast,
  }));
  const missed = results.filter(({ perSecond, atLeast }) => atLeast !== undefined && perSecond < atLeast);
  if (json) {
    process.stdout.write(
      `${JSON.stringify({ identity: results, missed: missed.map(({ name }) => name) })}\n`,
    );
  } else {
    const table = new Table({
      head: ["on one core", "a second", "at least"],
      style: { head: [], border: [] },
    });
    for (const { name, perSecond, atLeast } of results) {
      table.push([name, perSecond.toLocaleString("en"), atLeast?.toLocaleString("en") ?? ""]);
    }
    process.stdout.write(`${table.toString()}\n`);
  }
  if (missed.length > 0) process.exitCode = 1;
}

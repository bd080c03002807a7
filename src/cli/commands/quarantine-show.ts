import { Command } from "commander";
import { printable } from "../../message/show-value.ts";
import { decodeUtf8 } from "../../message/utf8.ts";
import { postgres } from "../../store/postgres/postgres.ts";
import type { QuarantineEntry } from "../../store/quarantine-entry.ts";
import { openDatabase } from "../database.ts";
import { exitCodes } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { jsonOption, schemaOption } from "../options.ts";
import type { Action } from "../program.ts";

interface Options {
  readonly schema: string;
  readonly payload?: true;
  readonly json?: true;
}

/** `inbox quarantine show`: one entry with all that is known of it. */
export function quarantineShowCommand(io: Io, ended: Action): Command {
  return new Command("show")
    .description("show one entry of the quarantine, whole")
    .argument("<id>", "the entry's id, from: inbox quarantine list")
    .addOption(schemaOption())
    .option("--payload", "write only the payload's bytes to stdout, as they came")
    .addOption(jsonOption().conflicts("payload"))
    .action(async (id: string, { schema, payload, json }: Options) => {
      const database = await openDatabase(io, { local: "existing", maxConnections: 1 });
      try {
        const entry = await postgres(database.pool, { schema }).quarantined.show(id);
        if (entry === undefined) {
          io.say(
            `inbox: There is no entry ${printable(id)} in quarantine. See: inbox quarantine list --status all`,
          );
          return ended(exitCodes.failed);
        }
        if (payload) io.printBytes(entry.payload ?? new Uint8Array());
        else if (json) io.print(JSON.stringify(jsonOf(entry)));
        else io.print(linesOf(entry).join("\n"));
        ended(exitCodes.fine);
      } finally {
        await database.close();
      }
    });
}

function jsonOf({ payload, ...rest }: QuarantineEntry): Record<string, unknown> {
  if (payload === null) return { ...rest, payload: null };
  const text = decodeUtf8(payload);
  // Bytes that are no text would be changed by any encoding into JSON but this one.
  return text === undefined
    ? { ...rest, payloadBase64: Buffer.from(payload).toString("base64") }
    : { ...rest, payload: text };
}

function linesOf(entry: QuarantineEntry): readonly string[] {
  const facts: readonly (readonly [string, string | undefined])[] = [
    ["id", entry.id],
    ["status", entry.status],
    ["consumer", entry.consumer],
    ["handler version", entry.handlerVersion],
    ["tenant", entry.tenant],
    ["producer", entry.producer],
    ["message id", entry.messageId],
    ["identity as it came", entry.rawIdentity],
    ["key", entry.key],
    ["type", entry.type],
    ["code", entry.code],
    ["error", entry.error],
    ["attempts", String(entry.attempts)],
    ["deliveries", String(entry.deliveries)],
    ["first failed", entry.firstFailedAt.toISOString()],
    ["last failed", entry.lastFailedAt.toISOString()],
    ["fingerprint", `${entry.fingerprint} (${entry.fingerprintMode})`],
    ...Object.entries(entry.headers).map(([name, value]) => [`header ${name}`, value] as const),
    ["payload", payloadLine(entry.payload)],
  ];
  return facts
    .filter((fact): fact is readonly [string, string] => fact[1] !== undefined && fact[1] !== "")
    .map(([name, value]) => `${printable(name).padEnd(20)} ${printable(value)}`);
}

const shownBytes = 4_096;

function payloadLine(payload: Uint8Array | null): string {
  if (payload === null) return "none (a tombstone)";
  const text = decodeUtf8(payload);
  if (text === undefined) return `${payload.length} bytes that are no text; see --payload`;
  return payload.length > shownBytes
    ? `${text.slice(0, shownBytes)}… (${payload.length} bytes; see --payload)`
    : text;
}

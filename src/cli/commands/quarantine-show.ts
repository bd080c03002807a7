import type { Command } from "commander";
import { printable } from "../../message/show-value.ts";
import type { ShownEntry } from "../../quarantine/show-entry.ts";
import type { QuarantineRow } from "../../store/quarantine-entry.ts";
import { bodyJson, bodyLine } from "../body-output.ts";
import { exitCodes } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { jsonOption } from "../options.ts";
import type { Action } from "../program.ts";
import { factLines } from "../table.ts";
import { storeCommand, withStore, type StoreOptions } from "../with-store.ts";

interface Options extends StoreOptions {
  readonly payload?: true;
  readonly json?: true;
}

/** `inbox quarantine show`: one entry with all that is known of it. */
export function quarantineShowCommand(io: Io, ended: Action): Command {
  return storeCommand("show")
    .description("show one entry of the quarantine, with its decision and the message's earlier entries")
    .argument("<id>", "the entry's id, from: inbox quarantine list")
    .option("--payload", "write only the payload's bytes to stdout, as they came, with nothing hidden")
    .addOption(jsonOption().conflicts("payload"))
    .action((id: string, options: Options) =>
      withStore(io, options, async ({ quarantine }) => {
        const missing = (): void => {
          io.say(
            `inbox: There is no entry ${printable(id)} in quarantine. See: inbox quarantine list --status all`,
          );
          ended(exitCodes.failed);
        };
        if (options.payload) {
          const entry = await quarantine.entry(id);
          if (entry === undefined) return missing();
          io.printBytes(entry.payload ?? new Uint8Array());
          return ended(exitCodes.fine);
        }
        const entry = await quarantine.show(id);
        if (entry === undefined) return missing();
        const { tenant, producer, messageId } = entry;
        const history =
          messageId === undefined || producer === undefined
            ? []
            : await quarantine.history({
                ...{ consumer: entry.consumer, tenant: tenant ?? "", producer, id: messageId },
              });
        const others = history.filter((other) => other.id !== entry.id);
        if (options.json) io.print(JSON.stringify({ ...entryJson(entry), history: others }));
        else io.print([...entryLines(entry), ...otherLines(others)].join("\n"));
        ended(exitCodes.fine);
      }),
    );
}

function entryJson({ payload, repair, ...rest }: ShownEntry): Record<string, unknown> {
  if (repair === undefined) return { ...rest, ...bodyJson(payload) };
  const { payload: repaired, ...facts } = repair;
  return { ...rest, ...bodyJson(payload), repair: { ...facts, ...bodyJson(repaired) } };
}

function entryLines(entry: ShownEntry): readonly string[] {
  const { decision, repair } = entry;
  return [
    ...factLines([
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
      ["time", entry.time?.toISOString()],
      ["code", entry.code],
      ["error", entry.error],
      ["group", entry.group],
      ["attempts", String(entry.attempts)],
      ["deliveries", String(entry.deliveries)],
      ["first failed", entry.firstFailedAt.toISOString()],
      ["last failed", entry.lastFailedAt.toISOString()],
      ["again of", entry.againOf],
      ["fingerprint", `${entry.fingerprint} (${entry.fingerprintMode})`],
      ["sealed with", entry.keyId],
      ...Object.entries(entry.headers).map(([name, value]) => [`header ${name}`, value] as const),
      ["payload", bodyLine(entry.payload)],
      ["decision", decision && `${decision.kind} (${decision.id})`],
      ["decided by", decision?.by],
      ["decided at", decision?.at.toISOString()],
      ["reason", decision?.why],
      ["repaired as", repair && `${repair.producer} ${repair.messageId}`],
      ["repaired payload", repair && bodyLine(repair.payload)],
    ]),
    ...(repair === undefined ? [] : diffLines(repair.diff)),
  ];
}

/** A diff for a terminal: its line breaks stay, nothing else steers. */
export const diffLines = (diff: string): readonly string[] => diff.trimEnd().split("\n").map(printable);

const otherLines = (rows: readonly QuarantineRow[]): readonly string[] =>
  rows.map(({ id, status, code, lastFailedAt, decision }) =>
    printable(
      `other entry ${id}: ${status}, ${code}, last failed ${lastFailedAt.toISOString()}` +
        (decision === undefined ? "" : `, ${decision.kind} by ${decision.by}: ${decision.why}`),
    ),
  );

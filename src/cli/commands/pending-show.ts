import type { Command } from "commander";
import type { ShownPending } from "../../pending/pending.ts";
import { bodyJson, bodyLine } from "../body-output.ts";
import { exitCodes } from "../exit-codes.ts";
import { findPending } from "../find-pending.ts";
import type { Io } from "../io.ts";
import { jsonOption } from "../options.ts";
import type { PendingFilterOptions } from "../pending-filter.ts";
import type { Action } from "../program.ts";
import { factLines } from "../table.ts";
import { storeCommand, withStore, type StoreOptions } from "../with-store.ts";

interface Options extends Pick<PendingFilterOptions, "consumer" | "producer" | "tenant">, StoreOptions {
  readonly json?: true;
}

/** `inbox pending show`: one pending message, whole. */
export function pendingShowCommand(io: Io, ended: Action): Command {
  return storeCommand("show")
    .description("show one pending message, whole; what it waits for: inbox explain")
    .argument("<id>", "the message's id")
    .option("--consumer <name>", "whose it is, where several have it")
    .option("--producer <name>", "from whom, where several sent one of this id")
    .option("--tenant <name>", "of which tenant")
    .addOption(jsonOption())
    .action((id: string, options: Options) =>
      withStore(io, options, async ({ pending }) => {
        const message = await findPending(io, pending, id, options);
        const shown = message && (await pending.show(message));
        if (shown === undefined) return ended(exitCodes.failed);
        const { payload, ...rest } = shown;
        io.print(
          options.json ? JSON.stringify({ ...rest, ...bodyJson(payload) }) : linesOf(shown).join("\n"),
        );
        ended(exitCodes.fine);
      }),
    );
}

const linesOf = (shown: ShownPending): readonly string[] =>
  factLines([
    ["message id", shown.messageId],
    ["consumer", shown.consumer],
    ["tenant", shown.tenant],
    ["producer", shown.producer],
    ["key", shown.key],
    ["type", shown.type],
    ["time", shown.time?.toISOString()],
    ["state", shown.state],
    ["position", shown.position],
    ["received", shown.receivedAt.toISOString()],
    ["due", shown.dueAt?.toISOString()],
    ["attempts", String(shown.attempts)],
    ["code", shown.code],
    ["error", shown.error],
    ["fingerprint", `${shown.fingerprint} (${shown.fingerprintMode})`],
    ["sealed with", shown.keyId],
    ...Object.entries(shown.headers).map(([name, value]) => [`header ${name}`, value] as const),
    ["payload", bodyLine(shown.payload)],
  ]);

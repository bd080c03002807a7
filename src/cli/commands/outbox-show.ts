import type { Command } from "commander";
import { printable } from "../../message/show-value.ts";
import type { EffectHistory } from "../../outbox/effect-history.ts";
import type { ShownRefusedEffect } from "../../outbox/show-effect.ts";
import { age } from "../age.ts";
import { bodyJson, bodyLine } from "../body-output.ts";
import { exitCodes } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { notesOf } from "../notes.ts";
import { jsonOption } from "../options.ts";
import type { Action } from "../program.ts";
import { factLines } from "../table.ts";
import { UsageError } from "../usage-error.ts";
import { storeCommand, withStore, type Desk, type StoreOptions } from "../with-store.ts";
import { diffLines } from "./quarantine-show.ts";

interface Options extends StoreOptions {
  readonly destination?: string;
  readonly producer?: string;
  readonly tenant?: string;
  readonly effectId?: string;
  readonly payload?: true;
  readonly json?: true;
}

const notes = `
Without an entry's id, an effect is named by its destination, its producer and its own id, whatever became of it.

Examples:
  $ inbox outbox show 17
  $ inbox outbox show 17 --payload > refused.json
  $ inbox outbox show --destination email --producer orders --effect-id receipt/o-1

Exit codes: 0 fine, 1 failed or not there, 2 wrong usage.`;

/** `inbox outbox show`: one effect with its attempts, refusals and decisions. */
export function outboxShowCommand(io: Io, ended: Action): Command {
  return storeCommand("show")
    .description("show one effect: its body if it was refused, its attempts, and the decisions on it")
    .argument("[id]", "the entry's id, from: inbox outbox list")
    .option("--destination <name>", "of an effect that is named by its own id")
    .option("--producer <name>", "likewise")
    .option("--tenant <name>", 'likewise (default: "")')
    .option("--effect-id <id>", "the effect's own id")
    .option("--payload", "write only the refused payload's bytes to stdout, with nothing hidden")
    .addOption(jsonOption().conflicts("payload"))
    .addHelpText("after", notesOf(notes))
    .action((id: string | undefined, options: Options) => {
      checkName(id, options);
      return withStore(io, options, async (desk) => {
        const code =
          id === undefined ? await showEffect(io, desk, options) : await showEntry(io, desk, id, options);
        ended(code ? exitCodes.fine : exitCodes.failed);
      });
    });
}

function checkName(id: string | undefined, options: Options): void {
  const { destination, producer, tenant, effectId, payload } = options;
  const parts = [destination, producer, effectId];
  const named = parts.every((part) => part !== undefined);
  const any = [...parts, tenant].some((part) => part !== undefined);
  if (id === undefined && !named)
    throw new UsageError("Give an entry's id, or --destination, --producer and --effect-id.");
  if (id !== undefined && any) throw new UsageError("Give either an entry's id, or the effect's name.");
  if (id === undefined && payload) throw new UsageError("--payload takes an entry's id.");
}

async function showEntry(io: Io, { outbox }: Desk, id: string, options: Options): Promise<boolean> {
  const entry = await outbox.show(id);
  if (entry === undefined) {
    io.say(`inbox: There is no refused effect ${printable(id)}. See: inbox outbox list --status all`);
    return false;
  }
  if (options.payload) {
    const body = await outbox.body(id);
    if (body === undefined) {
      io.say(`inbox: The body of entry ${printable(id)} is not there any more: it was sent, or forgotten.`);
      return false;
    }
    io.printBytes(body.payload ?? new Uint8Array());
    return true;
  }
  const { destination, producer, tenant, effectId } = entry;
  const history = await outbox.effect({ destination, producer, tenant, id: effectId });
  if (options.json)
    io.print(JSON.stringify({ ...entryJson(entry), history: history && historyJson(history) }));
  else io.print([...entryLines(entry), ...(history === undefined ? [] : historyLines(history))].join("\n"));
  return true;
}

async function showEffect(io: Io, { outbox }: Desk, options: Options): Promise<boolean> {
  const { destination = "", producer = "", tenant, effectId = "" } = options;
  const history = await outbox.effect({ destination, producer, tenant, id: effectId });
  if (history === undefined) {
    io.say(`inbox: No such effect was asked for, or it is forgotten: ${printable(effectId)}`);
    return false;
  }
  if (options.json) {
    io.print(JSON.stringify({ destination, producer, tenant, effectId, ...historyJson(history) }));
  } else {
    const name = [
      ["destination", destination],
      ["producer", producer],
      ["tenant", tenant],
      ["effect id", effectId],
    ] as const;
    io.print([...factLines(name), ...historyLines(history)].join("\n"));
  }
  return true;
}

function entryJson({ body, repair, ...rest }: ShownRefusedEffect): Record<string, unknown> {
  return {
    ...rest,
    ...(body === undefined ? {} : { headers: body.headers, ...bodyJson(body.payload) }),
    ...(repair === undefined
      ? {}
      : { repair: { headers: repair.headers, ...bodyJson(repair.payload), diff: repair.diff } }),
  };
}

const historyJson = ({ refusals, ...rest }: EffectHistory): Record<string, unknown> => ({
  ...rest,
  refusals: refusals.map(({ id, status, code, refusedAt, decision }) => ({
    ...{ id, status, code, refusedAt, decision },
  })),
});

function entryLines(entry: ShownRefusedEffect): readonly string[] {
  const { decision, body, repair } = entry;
  return [
    ...factLines([
      ["id", entry.id],
      ["status", entry.status],
      ["destination", entry.destination],
      ["tenant", entry.tenant],
      ["producer", entry.producer],
      ["effect id", entry.effectId],
      ["key", entry.key],
      ["its key waits", entry.key === undefined ? undefined : entry.holdsKey ? "yes" : "no"],
      ["type", entry.type],
      ["time", entry.time?.toISOString()],
      ["code", entry.code],
      ["error", entry.error],
      ["group", entry.group],
      ["asked for", entry.askedAt.toISOString()],
      ["refused", `${entry.refusedAt.toISOString()} (${age(entry.refusedMs)} ago)`],
      ["again of", entry.againOf],
      ["sealed with", entry.keyId],
      ...Object.entries(body?.headers ?? {}).map(([name, value]) => [`header ${name}`, value] as const),
      [
        "payload",
        body === undefined ? "not there any more: it was sent, or forgotten" : bodyLine(body.payload),
      ],
      ["decision", decision && `${decision.kind} (${decision.id})`],
      ["decided by", decision?.by],
      ["decided at", decision?.at.toISOString()],
      ["reason", decision?.why],
      ["repaired payload", repair && bodyLine(repair.payload)],
    ]),
    ...(repair === undefined ? [] : diffLines(repair.diff)),
  ];
}

function historyLines({ outcome, waiting, attempts, refusals }: EffectHistory): readonly string[] {
  return [
    ...factLines([
      ["outcome", outcome],
      ["state", waiting?.state],
      ["next attempt", waiting?.dueAt?.toISOString()],
    ]),
    ...attempts.map(({ at, attempt, outcome: how, code, error, status, result, tookMs }) => {
      const facts = [
        ...[how, code, status === undefined ? undefined : `status ${status}`],
        ...[tookMs === undefined ? undefined : `${tookMs} ms`, error, result && `answer ${result}`],
      ];
      const said = facts.filter((part) => part !== undefined && part !== "").join(", ");
      return printable(`attempt ${attempt} ${at.toISOString()}: ${said}`);
    }),
    ...refusals.map(({ id, status, code, refusedAt, decision }) =>
      printable(
        `entry ${id}: ${status}, ${code}, refused ${refusedAt.toISOString()}` +
          (decision === undefined ? "" : `, ${decision.kind} by ${decision.by}: ${decision.why}`),
      ),
    ),
  ];
}

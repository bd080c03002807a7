import { resolve } from "node:path";
import { InvalidArgumentError, Option, type Command } from "commander";
import type { ReplayEffects, ReplayPolicy } from "../replay/policy.ts";
import { replayStored, type ReplaySource } from "../replay/replay-source.ts";
import type { StoredPart } from "../replay/stored-bodies.ts";
import type { PayloadKeys } from "../store/protection.ts";
import { postgres } from "../store/postgres/postgres.ts";
import type { FormatChoice } from "../message/formats/formats.ts";
import { parseRfc3339 } from "../message/rfc3339.ts";
import { formatNameOption, idHeaderOption, idRuleOption, namedFormat } from "./identity-options.ts";
import type { Io } from "./io.ts";
import { openReplayKafka, type OpenedSource } from "./replay-kafka.ts";
import { wholeNumber } from "./options.ts";
import { planSource, type RunSourceOptions } from "./run-source.ts";
import { UsageError } from "./usage-error.ts";

/** Which policy, and over what. */
export interface ReplayFlags extends Omit<RunSourceOptions, "source"> {
  readonly of?: string;
  readonly rebuildAs?: string;
  readonly projection?: { readonly name: string; readonly version: number };
  readonly compensate?: string;
  readonly appliedBy?: readonly string[];
  readonly effects?: ReplayEffects;
  readonly source?: string;
  readonly stored?: string;
  readonly storedSchema?: string;
  readonly include?: readonly StoredPart[];
  readonly kafka?: readonly string[];
  readonly kafkaGroup?: string;
  readonly from?: Date;
}

/** The flags of `inbox replay plan` and `inbox replay run`. */
export const addReplayFlags = (command: Command): Command =>
  command
    .option("--of <consumer>", "the original consumer, which stays as it is")
    .option("--rebuild-as <consumer>", "policy: a read model under another consumer's name")
    .option("--projection <name@version>", "policy: the next version of a projection", projectionOf)
    .option("--compensate <migration>", "policy: a correction of what the original has applied")
    .option("--applied-by <versions...>", "with --compensate: only what these handler versions have applied")
    .addOption(
      new Option(
        "--effects <how>",
        "what becomes of effects the handler asks for (default: refuse, which ends the replay)",
      ).choices(["refuse", "drop", "send"]),
    )
    .option("--source <file>", "newline-delimited JSON, a document, or a directory of documents")
    .option("--stored <consumer>", "the bodies that an inbox keeps of this consumer")
    .option("--stored-schema <name>", "the schema of that inbox (default: --schema)")
    .addOption(
      new Option("--include <parts...>", "with --stored: which bodies").choices([
        ...["pending", "retried", "repaired", "open"],
      ]),
    )
    .option("--kafka <topics...>", "topics of the brokers in KAFKA_BROKERS, to their end as of the start")
    .option("--kafka-group <name>", "with --kafka: a group of the replay's own, never that of a consumer")
    .option("--from <time>", "with --kafka: the first record of this time or later (default: all)", timeOf)
    .addOption(formatNameOption("--identity <name>", "how messages are named (default: cloudevents)"))
    .option("--id-path <path>", "lines are plain JSON with their id here (/order/id or order.id)")
    .addOption(idHeaderOption())
    .addOption(idRuleOption())
    .option("--producer <name>", "who produced them, where the messages do not say")
    .option("--key-path <path>", "where the key stands: messages of one key keep their order")
    .option("--type-path <path>", "where the type stands; with --id-path alone")
    .option("--tenant <name>", "the tenant of all messages")
    .option("--max-line-bytes <n>", "a longer line is rejected", wholeNumber(1, 512 * 1024 * 1024))
    .option("--max-file-bytes <n>", "a larger document is rejected", wholeNumber(1, 1024 * 1024 * 1024));

/** The policy that the flags name; `undefined` where they name none. Throws a usage error for more than one. */
export function policyOf(flags: ReplayFlags): ReplayPolicy | undefined {
  const { of, rebuildAs, projection, compensate: migration, appliedBy, effects } = flags;
  const given = [rebuildAs, projection, migration].filter((value) => value !== undefined);
  if (given.length > 1) throw new UsageError("Give one policy: --rebuild-as, --projection or --compensate.");
  if (appliedBy !== undefined && migration === undefined)
    throw new UsageError("--applied-by goes with --compensate.");
  if (effects === "send" && given.length > 0 && migration === undefined)
    throw new UsageError("--effects send goes with --compensate: the others send no effects.");
  if (projection !== undefined) return { kind: "projection", ...projection, of, effects: effects as "drop" };
  if (given.length === 0) return undefined;
  if (of === undefined) throw new UsageError("--of must name the original consumer.");
  if (rebuildAs !== undefined)
    return { kind: "rebuild", of, consumer: rebuildAs, effects: effects as "drop" };
  return { kind: "compensate", of, migration: migration!, appliedBy, effects };
}

/** Where the messages come from. Throws a usage error for flags that do not fit together. */
export async function openReplaySource(
  io: Io,
  flags: ReplayFlags & { readonly schema: string },
  pool: unknown,
  payloadKeys: PayloadKeys | undefined,
): Promise<OpenedSource> {
  const { source, stored, storedSchema, include, kafka, kafkaGroup, from } = flags;
  if ([source, stored, kafka].filter((value) => value !== undefined).length !== 1)
    throw new UsageError("Say where the messages come from: --source, --stored or --kafka.");
  if ((storedSchema ?? include) !== undefined && stored === undefined)
    throw new UsageError("--stored-schema and --include go with --stored.");
  if ((kafkaGroup ?? from) !== undefined && kafka === undefined)
    throw new UsageError("--kafka-group and --from go with --kafka.");
  if (kafka !== undefined) {
    if (kafkaGroup === undefined)
      throw new UsageError("--kafka-group must name a group of the replay's own: its offsets are moved.");
    const { tenant } = flags;
    return openReplayKafka(io, {
      topics: kafka,
      groupId: kafkaGroup,
      from,
      identity: formatOf(flags),
      tenant,
    });
  }
  const close = async (): Promise<void> => undefined;
  if (stored !== undefined) {
    const store = postgres(pool, { schema: storedSchema ?? flags.schema, payloadKeys });
    return { source: replayStored({ store, consumer: stored, include }), close };
  }
  return { source: fileSource(flags, source, (text) => io.say(text)), close };
}

function fileSource(
  flags: ReplayFlags,
  source: string | undefined,
  say: (text: string) => void,
): ReplaySource {
  if (source === "-") throw new UsageError("A replay reads its source more than once: stdin cannot be one.");
  const plan = planSource({ ...flags, source: source! });
  return {
    name: `file:${resolve(source!)}`,
    open: ({ checkpoints, planning }) =>
      plan.open(planning ? { load: async () => undefined, save: async () => undefined } : checkpoints, say)
        .source,
  };
}

/** As `inbox identify` takes it: by its name, or what a header or a path makes of it. */
function formatOf(flags: ReplayFlags): FormatChoice {
  const { identity, idPath, idHeader } = flags;
  const name =
    identity ?? (idHeader !== undefined ? "header" : idPath !== undefined ? "json" : "cloudevents");
  return namedFormat(name, "--identity", flags);
}

function timeOf(text: string): Date {
  const time = parseRfc3339(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00:00Z` : text);
  if (time !== undefined) return time;
  throw new InvalidArgumentError("It must be a date or an RFC 3339 time, such as 2026-11-30T07:31:19Z.");
}

function projectionOf(text: string): { name: string; version: number } {
  const [, name, version] = /^(.+)@([1-9]\d{0,8})$/s.exec(text) ?? [];
  if (name === undefined) throw new InvalidArgumentError("It must be a name and a version: balances@3.");
  return { name, version: Number(version) };
}

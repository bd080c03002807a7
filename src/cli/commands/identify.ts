import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import { buffer } from "node:stream/consumers";
import { Command, Option } from "commander";
import type { FingerprintOptions } from "../../message/fingerprint-mode.ts";
import type { FormatName } from "../../message/formats/formats.ts";
import type { Format } from "../../message/formats/format.ts";
import { identifyFile, type Identified, type IdentifiedMessage } from "../../message/formats/identify.ts";
import { showValue } from "../../message/show-value.ts";
import { exitCodes } from "../exit-codes.ts";
import {
  formatNameOption,
  idHeaderOption,
  idRuleOption,
  namedFormat,
  type IdentityOptions,
} from "../identity-options.ts";
import type { Io } from "../io.ts";
import { notesOf } from "../notes.ts";
import { jsonOption } from "../options.ts";
import type { Action } from "../program.ts";
import { UsageError } from "../usage-error.ts";

interface Options extends IdentityOptions {
  readonly format?: FormatName;
  readonly fingerprint?: "bytes" | "json";
  readonly except?: readonly string[];
  readonly json?: true;
}

const notes = `
A file is one document, one a line, or a capture with headers: {"headers": {...}, "body": "..."}, a list of such under
"deliveries" or "messages", or what "aws sqs receive-message" prints. Bodies may be in body, rawBody, value, valueB64
(base64) or Body. Nothing is connected to and nothing is stored.

Examples:
  $ inbox identify event.json
  $ inbox identify orders.edi --format edifact
  $ inbox identify queue.json --format sqs --id-path /eventId
  $ curl -s https://example.test/event | inbox identify -

Exit codes: 0 every message has an identity, 1 failed, 2 wrong usage, 3 something would go to quarantine.`;

/** `inbox identify`: shows which identity, fingerprint, key and time a format reads from a file, and why. */
export function identifyCommand(io: Io, ended: Action): Command {
  return new Command("identify")
    .description("show what the inbox would take for a message's identity, and why")
    .argument("<files...>", "files to read; - is stdin")
    .addOption(formatNameOption("--format <name>", "how to read them (default: guessed)"))
    .option("--producer <name>", "the producer, where the messages name none (default: where they came from)")
    .option("--id-path <path>", "the JSON pointer of the id, such as /eventId; alone it means --format json")
    .addOption(idHeaderOption())
    .addOption(idRuleOption())
    .option("--key-path <pointer>", "the JSON pointer of the key")
    .addOption(
      new Option("--fingerprint <by>", "how payloads are compared (default: as suits the format)").choices([
        "bytes",
        "json",
      ]),
    )
    .option(
      "--except <pointers...>",
      "JSON pointers that may differ between copies of one message; needs --fingerprint json",
    )
    .addOption(jsonOption())
    .addHelpText("after", notesOf(notes))
    .action(async (files: readonly string[], options: Options) => {
      const format = formatOf(options);
      const fingerprint = fingerprintOf(options);
      let found = false;
      for (const file of files) {
        const bytes = file === "-" ? await buffer(process.stdin) : await readFile(file);
        const channel = file === "-" ? "stdin" : basename(file);
        const all = identifyFile(bytes, { format, fingerprint, producer: options.producer, channel });
        for (const one of all) {
          io.print(options.json ? JSON.stringify(jsonOf(file, one)) : textOf(file, one).join("\n"));
          if (one.result.kind === "rejected" || isConflict(one)) found = true;
        }
      }
      ended(found ? exitCodes.foundSomething : exitCodes.fine);
    });
}

const isConflict = ({ result }: Identified): boolean =>
  result.kind === "message" && result.verdict.is === "conflict";

function formatOf(options: Options): Format | undefined {
  const { format, idPath, idHeader } = options;
  const name = format ?? (idHeader !== undefined ? "header" : idPath !== undefined ? "json" : undefined);
  return name === undefined ? undefined : namedFormat(name, "--format", options);
}

function fingerprintOf({ fingerprint, except }: Options): FingerprintOptions | undefined {
  if (except !== undefined && fingerprint !== "json")
    throw new UsageError("--except needs --fingerprint json.");
  if (fingerprint === undefined) return undefined;
  return fingerprint === "json" ? { by: "json", except } : { by: "bytes" };
}

function jsonOf(file: string, { number, format, guessed, result }: Identified): object {
  return { file, number, format, ...(guessed === undefined ? {} : { guessed }), ...result };
}

function textOf(file: string, { number, format, guessed, result }: Identified): readonly string[] {
  const how = guessed === undefined ? format : `${format}, guessed: ${guessed}`;
  const head = `${showValue(file, 200).slice(1, -1)} #${number} (${showValue(how, 200).slice(1, -1)})`;
  switch (result.kind) {
    case "ignored":
      return [head, `  ignored      ${result.reason}`];
    case "rejected":
      return [head, `  quarantine   ${result.code}: ${result.text}`];
    case "message":
      return [head, ...messageLines(result)];
  }
}

function messageLines(message: IdentifiedMessage): readonly string[] {
  const { why, verdict, fingerprint } = message;
  const tenant = message.tenant === "" ? [] : [["tenant", showValue(message.tenant, 300), ""] as const];
  const lines: readonly (readonly [string, string, string])[] = [
    ...tenant,
    ["producer", showValue(message.producer, 600), ""],
    ["id", showValue(message.id, 1100), why.identity],
    [
      "fingerprint",
      fingerprint.digest === "" ? "none" : `${fingerprint.digest} (mode ${fingerprint.mode})`,
      why.fingerprint,
    ],
    [
      "payload",
      message.payloadBytes === undefined ? "none, a tombstone" : `${message.payloadBytes} bytes`,
      why.payload,
    ],
    ["key", message.key === undefined ? "none" : showValue(message.key, 200), why.key],
    ["time", message.time?.toISOString() ?? "none", why.time],
    ...(message.type === undefined ? [] : [["type", showValue(message.type, 200), ""] as const]),
    ["verdict", verdict.is === "new" ? "new" : `${verdict.is} of #${verdict.of}`, ""],
  ];
  return lines.flatMap(([name, value, reason]) => [
    `  ${name.padEnd(12)} ${value}`,
    ...(reason === "" ? [] : [`  ${"".padEnd(12)}   ${reason}`]),
  ]);
}

import { Option } from "commander";
import { formatByName, formatNames, type FormatName } from "../message/formats/formats.ts";
import type { Format } from "../message/formats/format.ts";
import type { IdRule } from "../message/formats/header-value.ts";
import { UsageError } from "./usage-error.ts";

/** What `inbox identify` and `inbox run` may be told of a format. */
export interface IdentityOptions {
  readonly producer?: string;
  readonly idPath?: string;
  readonly idHeader?: string;
  readonly idRule?: IdRule;
  readonly keyPath?: string;
}

/** `--id-header`, the same for both commands. */
export const idHeaderOption = (): Option =>
  new Option("--id-header <name>", "the header of the id; alone it means the format header");

/** `--id-rule`, the same for both commands. */
export const idRuleOption = (): Option =>
  new Option("--id-rule <rule>", "how the id header is read").choices(["text", "uuid"]);

/** The option that names a format. */
export const formatNameOption = (flags: string, description: string): Option =>
  new Option(flags, description).choices(formatNames);

/** The format of a name with the options that were given. Throws a usage error for options it needs and has not. */
export function namedFormat(name: FormatName, flag: string, options: IdentityOptions): Format {
  const { producer, idPath, idHeader, idRule, keyPath } = options;
  if (name === "json" && idPath === undefined)
    throw new UsageError(`${flag} json needs --id-path, such as --id-path /id.`);
  if (name === "header" && idHeader === undefined) throw new UsageError(`${flag} header needs --id-header.`);
  return formatByName(name, {
    ...{ producer, idHeader, idRule },
    ...{ idPath: asPointer(idPath), keyPath: asPointer(keyPath) },
  });
}

/** `order.id` and `/order/id` are the same path on the command line; formats take JSON pointers. */
const asPointer = (path: string | undefined): string | undefined =>
  path === undefined || path === "" || path.startsWith("/")
    ? path
    : path
        .split(".")
        .map((name) => `/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`)
        .join("");

import { InvalidArgumentError } from "commander";
import { InboxError } from "../errors.ts";
import { idTimeReader, type IdTime } from "../message/id-time.ts";

/** `--id-time`: the name of a kind of ids, or `snowflake:` and its epoch in milliseconds since 1970. */
export function idTimeFrom(text: string): IdTime {
  const epoch = /^snowflake:([0-9]{1,15})$/.exec(text)?.[1];
  const rule = epoch === undefined ? (text as IdTime) : { snowflake: { epochMs: Number(epoch) } };
  try {
    idTimeReader(rule);
    return rule;
  } catch (error) {
    if (!(error instanceof InboxError)) throw error;
    throw new InvalidArgumentError("It must be uuidv7, ulid, ksuid, objectid, or snowflake:EPOCH.");
  }
}

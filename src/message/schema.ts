import type { StandardSchemaV1 } from "@standard-schema/spec";
import { InboxError } from "../errors.ts";
import type { Message } from "./message.ts";
import { printable, showValue } from "./show-value.ts";

/** `issues`: what the schema said, readable and bounded. `error.code`: `invalid-payload`, or `malformed` for no JSON. */
export type Validation<Data> =
  | { readonly ok: true; readonly data: Data }
  | { readonly ok: false; readonly error: InboxError; readonly issues: readonly string[] };

const maxIssues = 10;
const maxIssueCharacters = 200;

/**
 * Reads a message's payload with a Standard Schema (zod, valibot, arktype and others); its input is `message.json()`,
 * so a tombstone is validated as `null`. A schema that answers at once costs no promise. What the schema itself throws
 * is thrown on: that is a fault of the program, not of the message.
 */
export function validateData<Schema extends StandardSchemaV1>(
  schema: Schema,
  message: Message,
):
  | Validation<StandardSchemaV1.InferOutput<Schema>>
  | Promise<Validation<StandardSchemaV1.InferOutput<Schema>>> {
  type Data = StandardSchemaV1.InferOutput<Schema>;
  let input: unknown;
  try {
    input = message.json();
  } catch (error) {
    if (error instanceof InboxError) return { ok: false, error, issues: [] };
    throw error;
  }
  const result = schema["~standard"].validate(input) as
    StandardSchemaV1.Result<Data> | Promise<StandardSchemaV1.Result<Data>>;
  return "then" in result
    ? result.then((settled) => toValidation(settled, message))
    : toValidation(result, message);
}

function toValidation<Data>(result: StandardSchemaV1.Result<Data>, message: Message): Validation<Data> {
  if (!result.issues) return { ok: true, data: result.value };
  const issues = result.issues.slice(0, maxIssues).map(describeIssue);
  const more = result.issues.length - issues.length;
  if (more > 0) issues.push(`and ${more} more`);
  const text = `The payload of message ${showValue(message.id)} of ${showValue(message.producer)} does not fit the schema: ${issues.join("; ")}`;
  return { ok: false, error: new InboxError("invalid-payload", text), issues };
}

function describeIssue(issue: StandardSchemaV1.Issue): string {
  const path = (issue.path ?? [])
    .slice(0, 32)
    .map((segment) => String(typeof segment === "object" ? segment.key : segment));
  const text = path.length === 0 ? issue.message : `${path.join(".")}: ${issue.message}`;
  return printable(text.length > maxIssueCharacters ? `${text.slice(0, maxIssueCharacters)}...` : text);
}

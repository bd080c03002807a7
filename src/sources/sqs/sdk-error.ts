import { codeOf, causes } from "../../errors.ts";

const mostCharacters = 80;

/**
 * What went wrong, by its name alone: `QueueDoesNotExist`, `ECONNREFUSED`. Never the error's message or the error as a
 * cause: SQS answers a wrong signature with the whole request that was signed, session token included.
 */
export function errorName(error: unknown): string {
  for (const link of causes(error)) {
    const code = codeOf(link);
    if (/^E[A-Z_]+$/.test(code)) return code;
  }
  const name = error instanceof Error ? error.name : "";
  const text = name === "" || name === "Error" ? codeOf(error) || "Error" : name;
  return text.replace(/[^\w.-]/g, "?").slice(0, mostCharacters);
}

/** Whether SQS says that there is no such queue. */
export const isMissingQueue = (name: string): boolean =>
  /^(QueueDoesNotExist|AWS\.SimpleQueueService\.NonExistentQueue|NonExistentQueue)$/.test(name);

/** Whether the caller may do this at all, but not with these rights. */
export const isDenied = (name: string): boolean => /AccessDenied|NotAuthorized|Forbidden/i.test(name);

/** Whether the credentials are missing, wrong or too old. */
export const isUnauthenticated = (name: string): boolean =>
  /Credentials|InvalidClientTokenId|UnrecognizedClient|ExpiredToken|SignatureDoesNotMatch|InvalidSecurity|InvalidAccessKeyId|InvalidSignature/i.test(
    name,
  );

/** Whether the answer was lost on its way, or never came: SQS may have done what was asked. */
export const isNetwork = (name: string): boolean => /^E[A-Z_]+$|Timeout|AbortError/.test(name);

/** The name with what to do about it. */
export function errorAdvice(name: string): string {
  if (isMissingQueue(name)) return `${name}: create the queue, or correct queueUrl and the client's region`;
  if (isUnauthenticated(name)) return `${name}: the client's credentials are missing, wrong or too old`;
  if (isDenied(name))
    return `${name}: allow sqs:ReceiveMessage, sqs:DeleteMessage, sqs:ChangeMessageVisibility and sqs:GetQueueAttributes`;
  return name;
}
